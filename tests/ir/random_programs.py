"""Hypothesis strategies for arbitrary programs: every node and field of the IR, meaningful or not."""

from __future__ import annotations

from hypothesis import strategies as st

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Rank
from schedc.ir.program import (
    Array,
    Await,
    Barrier,
    Buffer,
    Case,
    Compute,
    Loop,
    Operand,
    Phase,
    Pool,
    Program,
    Region,
    RemoteStart,
    Scalars,
    Semaphore,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    table,
)

plain_names = st.sampled_from(["a", "l", "ring.slot", "w_qkv", "min", "true", "and", "wait", "rank", "x9"])
names = plain_names | st.text(min_size=1, max_size=4)
integers = st.integers(-(10**6), 10**6)
naturals = st.integers(0, 10**6)


def _binary(children):
    return st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%", "^", "min", "max"]), children, children)


exprs = st.recursive(
    st.builds(Const, integers) | st.builds(Counter, names) | st.just(Rank()),
    lambda children: _binary(children) | st.builds(Element, names, children),
    max_leaves=6,
)
compares = st.builds(Compare, st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]), exprs, exprs)
attributes = st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.booleans()
regions = st.builds(Region, names, naturals, exprs, exprs)
semaphores = st.builds(SemaphoreRef, names, exprs)


def _tuples(items, most=3):
    return st.lists(items, max_size=most).map(tuple)


operands = st.builds(Operand, names, st.sampled_from(["read", "write", "update"]), regions)
simple_ops = st.one_of(
    st.builds(Start, regions, regions, semaphores),
    st.builds(Wait, semaphores, naturals),
    st.builds(RemoteStart, regions, regions, exprs, semaphores, semaphores),
    st.builds(Signal, semaphores, naturals, st.none() | exprs),
    st.just(Barrier()),
    st.builds(Await, semaphores, naturals),
    st.builds(
        Compute,
        names,
        _tuples(operands),
        _tuples(st.tuples(names, exprs)),
        _tuples(st.tuples(names, attributes)),
        _tuples(st.tuples(names, names)),
    ),
    st.builds(SetScalar, names, exprs, exprs),
)
ops = st.recursive(
    simple_ops,
    lambda children: st.one_of(
        st.builds(Loop, names, exprs, _tuples(children), st.booleans()),
        st.builds(When, _tuples(compares, 2), _tuples(children)),
        st.builds(Switch, exprs, _tuples(st.builds(Case, integers, _tuples(children)))),
        st.builds(Phase, names, _tuples(children)),
    ),
    max_leaves=5,
)
programs = st.builds(
    Program,
    names | st.just("smollm2-135m"),
    _tuples(st.builds(Pool, names, naturals), 2),
    _tuples(st.builds(Buffer, names, names, naturals, naturals, st.none() | naturals, naturals), 2),
    _tuples(st.builds(Array, names, naturals, st.sampled_from(["weight", "input", "state", "output"])), 2),
    _tuples(
        st.builds(Scalars, names, naturals, integers, integers, st.sampled_from(["input", "local"]))
        | st.builds(Scalars, names, naturals, integers, integers, st.just("input"), distinct=st.just(True))
        | st.builds(table, names, st.lists(integers, min_size=1, max_size=3).map(tuple)),
        2,
    ),
    _tuples(st.builds(Semaphore, names, naturals, st.sampled_from(["dma", "regular"])), 2),
    _tuples(ops, 4),
    st.integers(1, 64),
    _tuples(st.tuples(names, attributes), 2),
)

"""Guards, cases and scalars that say something else."""

from __future__ import annotations

import random
from dataclasses import replace

from schedc.ir.expr import Compare, Const, Counter, Element, Rank, add, mod, sub
from schedc.ir.program import (
    Await,
    Barrier,
    Compute,
    Loop,
    Program,
    RemoteStart,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)
from tests.ir.mutation.edit import Path, all_sites, exchanged, operations, with_part, with_part_of
from tests.ir.mutation.registry import kind

_NEGATED = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">=": "<", ">": "<="}
_ALMOST = {"<": "<=", "<=": "<", "==": ">=", "!=": ">", ">=": ">", ">": ">="}


@kind
def opposite_guard(program: Program, rng: random.Random) -> Program | None:
    """A guard holds when it should not."""
    found = all_sites(program, Compare, When)
    if not found:
        return None
    path, site, compare = rng.choice(found)
    return with_part_of(program, path, site, replace(compare, op=_NEGATED[compare.op]))


@kind
def guard_by_one(program: Program, rng: random.Random) -> Program | None:
    """A guard is off by one."""
    found = all_sites(program, Compare, When)
    if not found:
        return None
    path, site, compare = rng.choice(found)
    changed = rng.choice(
        (
            replace(compare, op=_ALMOST[compare.op]),
            replace(compare, right=add(compare.right, 1)),
            replace(compare, right=sub(compare.right, 1)),
        )
    )
    return with_part_of(program, path, site, changed)


@kind
def drop_guard(program: Program, rng: random.Random) -> Program | None:
    """What was guarded is always done."""
    found = operations(program, When)
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, *op.body)


@kind
def add_guard(program: Program, rng: random.Random) -> Program | None:
    """An operation is done in some iterations, for some scalars or on some devices only."""
    path, op = rng.choice(operations(program, Start, RemoteStart, Wait, Signal, Await, Barrier, Compute, SetScalar))
    return exchanged(program, path, When((rng.choice(_guards(program, path)),), (op,)))


def _guards(program: Program, path: Path) -> list[Compare]:
    """Comparisons that hold sometimes, of what is known at a path."""
    guards = [
        Compare("<", Element(declared.name, Const(0)), Const((declared.low + declared.high + 1) // 2))
        for declared in program.scalars
        if declared.role == "input" and declared.low < declared.high
    ]
    if program.devices > 1:
        guards.append(Compare("==", Rank(), Const(0)))
    ops = program.body
    for index in path[:-1]:
        op = ops[index]
        if isinstance(op, Loop):
            guards += [Compare("!=", Counter(op.counter), Const(k)) for k in (0, 1)]
        ops = op.body  # type: ignore[union-attr]
    return guards or [Compare("<", Const(1), Const(0))]


@kind
def swap_cases(program: Program, rng: random.Random) -> Program | None:
    """Two kinds of layers are taken for each other."""
    found = [place for place in operations(program, Switch) if len(place[1].body) > 1]
    if not found:
        return None
    path, op = rng.choice(found)
    a, b = rng.sample(range(len(op.body)), 2)
    cases = list(op.body)
    cases[a], cases[b] = replace(cases[a], body=cases[b].body), replace(cases[b], body=cases[a].body)
    return exchanged(program, path, replace(op, body=tuple(cases)))


@kind
def empty_case(program: Program, rng: random.Random) -> Program | None:
    """A kind of layer does nothing."""
    found = operations(program, Switch)
    if not found:
        return None
    path, op = rng.choice(found)
    at = rng.randrange(len(op.body))
    return exchanged(program, path, with_part(op, ("body", at), replace(op.body[at], body=())))


@kind
def other_table(program: Program, rng: random.Random) -> Program | None:
    """A table says something else of one layer, in one of the places where it is read."""
    tables = {declared.name for declared in program.scalars if declared.role == "table"}
    anywhere = [s for s in all_sites(program, Element) if s[2].array in tables]
    choices = [s for s in all_sites(program, Element, Switch, When) if s[2].array in tables]
    if not anywhere or not choices:
        return None
    path, site, element = rng.choice(choices if rng.random() < 0.5 else anywhere)
    others = [d.name for d in program.scalars if d.role == "table" and d.name != element.array]
    return with_part_of(program, path, site, replace(element, array=rng.choice(others))) if others else None


@kind
def other_scalar(program: Program, rng: random.Random) -> Program | None:
    """A scalar is read from another element or array."""
    found = [
        (path, site, element)
        for path, site, element in all_sites(program, Element)
        if not any(declared.name == element.array and declared.role == "table" for declared in program.scalars)
    ]
    if not found:
        return None
    path, site, element = rng.choice(found)
    others = [
        Element(declared.name, index)
        for declared in program.scalars
        if declared.role != "table"
        for index in (Const(0), mod(add(element.index, 1), declared.length))
        if Element(declared.name, index) != element
    ]
    return with_part_of(program, path, site, rng.choice(others)) if others else None


@kind
def other_value(program: Program, rng: random.Random) -> Program | None:
    """A scalar is set to one more or one less, or another element is."""
    found = operations(program, SetScalar)
    if not found:
        return None
    path, op = rng.choice(found)
    length = next(declared.length for declared in program.scalars if declared.name == op.array)
    changed = rng.choice(
        (
            replace(op, value=add(op.value, 1)),
            replace(op, value=sub(op.value, 1)),
            replace(op, index=mod(add(op.index, 1), length)),
        )
    )
    return exchanged(program, path, changed)


@kind
def sets_other(program: Program, rng: random.Random) -> Program | None:
    """A computation sets one scalar array less, or another one."""
    found = [(path, op) for path, op in operations(program, Compute) if op.sets]
    if not found:
        return None
    path, op = rng.choice(found)
    which = rng.randrange(len(op.sets))
    parameter, array = op.sets[which]
    others = [(parameter, declared.name) for declared in program.scalars if declared.name != array]
    changed = rng.choice([(), *((other,) for other in others)])
    return exchanged(program, path, replace(op, sets=(*op.sets[:which], *changed, *op.sets[which + 1 :])))


@kind
def wrong_argument(program: Program, rng: random.Random) -> Program | None:
    """A computation gets the next scalar of an array, which may be none, or none that was set."""
    found = [(path, site, x) for path, site, x in all_sites(program, Element, Compute)]
    if not found:
        return None
    path, site, element = rng.choice(found)
    return with_part_of(program, path, site, replace(element, index=add(element.index, 1)))

"""Operations in another order, or in another block."""

from __future__ import annotations

import random

from schedc.ir.expr import Counter
from schedc.ir.program import (
    BLOCKS,
    Await,
    Barrier,
    Case,
    Loop,
    Phase,
    Program,
    RemoteStart,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)
from tests.ir.mutation.edit import Path, block, exchanged, operations, part, sites, with_block
from tests.ir.mutation.registry import kind


def _moved(program: Program, rng: random.Random, *kinds: type) -> Program | None:
    """An operation goes to another place of its block."""
    found = [place for place in operations(program, *kinds) if len(block(program, place[0][:-1])) > 1]
    if not found:
        return None
    path, op = rng.choice(found)
    ops = list(block(program, path[:-1]))
    del ops[path[-1]]
    ops.insert(rng.choice([i for i in range(len(ops) + 1) if i != path[-1]]), op)
    return with_block(program, path[:-1], tuple(ops))


def _within_blocks(program: Program, *kinds: type) -> list[tuple[Path, object]]:
    """The operations that are in a block which is itself an operation among others."""
    return [(path, op) for path, op in operations(program, *kinds) if len(path) > 1]


@kind
def move_start(program: Program, rng: random.Random) -> Program | None:
    """A transfer or a message starts earlier or later in its block."""
    return _moved(program, rng, Start, RemoteStart)


@kind
def move_wait(program: Program, rng: random.Random) -> Program | None:
    """A wait stands earlier or later in its block."""
    return _moved(program, rng, Wait)


@kind
def move_signal(program: Program, rng: random.Random) -> Program | None:
    """A credit is given earlier or later."""
    return _moved(program, rng, Signal)


@kind
def move_await(program: Program, rng: random.Random) -> Program | None:
    """A credit is taken earlier or later."""
    return _moved(program, rng, Await)


@kind
def move_barrier(program: Program, rng: random.Random) -> Program | None:
    """The devices meet earlier or later."""
    return _moved(program, rng, Barrier)


@kind
def move_block(program: Program, rng: random.Random) -> Program | None:
    """A guarded block, a loop or a phase stands earlier or later."""
    return _moved(program, rng, When, Loop, Phase, Switch)


@kind
def hoist(program: Program, rng: random.Random) -> Program | None:
    """An operation leaves its block, to stand before or behind it."""
    found = [
        (path, op)
        for path, op in _within_blocks(program, Start, RemoteStart, Wait, Signal, Await, Barrier)
        if isinstance(block(program, path[:-2])[path[-2]], When | Phase)
    ]
    if not found:
        return None
    path, op = rng.choice(found)
    without = exchanged(program, path)
    left = block(without, path[:-2])[path[-2]]
    return exchanged(without, path[:-1], *((op, left) if rng.random() < 0.5 else (left, op)))  # type: ignore[arg-type]


@kind
def sink(program: Program, rng: random.Random) -> Program | None:
    """An operation goes into the block before or behind it."""
    found = []
    for path, op in operations(program, Start, RemoteStart, Wait, Signal, Await, Barrier):
        siblings = block(program, path[:-1])
        for step in (-1, 1):
            at = path[-1] + step
            if 0 <= at < len(siblings) and isinstance(siblings[at], When | Loop | Phase):
                found.append((path, op, at))
    if not found:
        return None
    path, op, at = rng.choice(found)
    siblings = list(block(program, path[:-1]))
    inner = siblings[at].body  # type: ignore[union-attr]
    body = (op, *inner) if at > path[-1] else (*inner, op)
    changed = with_block(program, (*path[:-1], at), body)
    return exchanged(changed, path)


@kind
def swap_neighbours(program: Program, rng: random.Random) -> Program | None:
    """Two operations that stand one after the other change places."""
    found = [
        path
        for path, op in operations(program, object)
        if path[-1] + 1 < len(block(program, path[:-1])) and not isinstance(op, Case)
    ]
    path = rng.choice(found)
    ops = list(block(program, path[:-1]))
    at = path[-1]
    ops[at], ops[at + 1] = ops[at + 1], ops[at]
    return with_block(program, path[:-1], tuple(ops))


@kind
def swap_operations(program: Program, rng: random.Random) -> Program | None:
    """Two operations without a body, anywhere in the program, change places."""
    leaves = [(path, op) for path, op in operations(program, object) if not isinstance(op, BLOCKS)]
    (path, op), (other_path, other) = rng.sample(leaves, 2)
    changed = exchanged(exchanged(program, path, other), other_path, op)
    return changed if _counters_known(changed) else None


def _counters_known(program: Program) -> bool:
    """Whether every counter that an operation uses belongs to a loop around it."""
    for path, op in operations(program, object):
        around = [block(program, path[:depth])[path[depth]] for depth in range(len(path) - 1)]
        known = {loop.counter for loop in around if isinstance(loop, Loop)}
        if any(part(op, site).name not in known for site in sites(op, Counter)):
            return False
    return True

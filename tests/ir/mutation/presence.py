"""An operation too few or too many."""

from __future__ import annotations

import random

from schedc.ir.program import Await, Barrier, Compute, Program, RemoteStart, SetScalar, Signal, Start, Wait
from tests.ir.mutation.edit import exchanged, operations
from tests.ir.mutation.registry import kind


def _dropped(program: Program, rng: random.Random, *kinds: type) -> Program | None:
    found = operations(program, *kinds)
    return exchanged(program, rng.choice(found)[0]) if found else None


def _doubled(program: Program, rng: random.Random, *kinds: type) -> Program | None:
    found = operations(program, *kinds)
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, op, op)


@kind
def drop_start(program: Program, rng: random.Random) -> Program | None:
    """A transfer is never started."""
    return _dropped(program, rng, Start)


@kind
def drop_remote_start(program: Program, rng: random.Random) -> Program | None:
    """A message is never sent."""
    return _dropped(program, rng, RemoteStart)


@kind
def drop_wait(program: Program, rng: random.Random) -> Program | None:
    """A transfer is not awaited."""
    return _dropped(program, rng, Wait)


@kind
def drop_signal(program: Program, rng: random.Random) -> Program | None:
    """A credit is not given."""
    return _dropped(program, rng, Signal)


@kind
def drop_await(program: Program, rng: random.Random) -> Program | None:
    """A credit is not taken."""
    return _dropped(program, rng, Await)


@kind
def drop_barrier(program: Program, rng: random.Random) -> Program | None:
    """The devices do not meet."""
    return _dropped(program, rng, Barrier)


@kind
def drop_compute(program: Program, rng: random.Random) -> Program | None:
    """A result is never computed."""
    return _dropped(program, rng, Compute)


@kind
def drop_set(program: Program, rng: random.Random) -> Program | None:
    """A scalar is never set."""
    return _dropped(program, rng, SetScalar)


@kind
def double_start(program: Program, rng: random.Random) -> Program | None:
    """A transfer is started twice."""
    return _doubled(program, rng, Start)


@kind
def double_remote_start(program: Program, rng: random.Random) -> Program | None:
    """A message is sent twice."""
    return _doubled(program, rng, RemoteStart)


@kind
def double_wait(program: Program, rng: random.Random) -> Program | None:
    """A transfer is awaited twice."""
    return _doubled(program, rng, Wait)


@kind
def double_signal(program: Program, rng: random.Random) -> Program | None:
    """A credit is given twice."""
    return _doubled(program, rng, Signal)


@kind
def double_await(program: Program, rng: random.Random) -> Program | None:
    """A credit is taken twice."""
    return _doubled(program, rng, Await)

"""Another iteration than the right one, or another number of them."""

from __future__ import annotations

import random
from dataclasses import replace

from schedc.ir.expr import Binary, Const, Counter, Expr, add, maximum, sub
from schedc.ir.program import (
    Await,
    Compute,
    Loop,
    Program,
    Region,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)
from tests.ir.mutation.edit import all_sites, exchanged, operations, part, sites, with_part, with_part_of
from tests.ir.mutation.registry import kind


def _beside(counter: Counter, rng: random.Random) -> Expr:
    return rng.choice([add(counter, 1), maximum(sub(counter, 1), 0)])


def _in_one_place(program: Program, rng: random.Random, within: type, *operations: type) -> Program | None:
    """One counter in a part of a kind is that of the next or the previous iteration."""
    found = [
        (path, (*site, *inner), part(value, inner))
        for path, site, value in all_sites(program, within, *operations)
        for inner in sites(value, Counter)
    ]
    if not found:
        return None
    path, site, counter = rng.choice(found)
    return with_part_of(program, path, site, _beside(counter, rng))


@kind
def wrong_iteration_of_region(program: Program, rng: random.Random) -> Program | None:
    """A region is that of another iteration."""
    return _in_one_place(program, rng, Region, Start, RemoteStart, Compute)


@kind
def wrong_iteration_of_semaphore(program: Program, rng: random.Random) -> Program | None:
    """A semaphore is that of another iteration."""
    return _in_one_place(program, rng, SemaphoreRef, Start, RemoteStart, Wait, Signal, Await)


@kind
def wrong_iteration_of_choice(program: Program, rng: random.Random) -> Program | None:
    """A guard, a case or a scalar is that of another iteration."""
    return _in_one_place(program, rng, object, When, Switch, SetScalar)


@kind
def whole_operation_of_another_iteration(program: Program, rng: random.Random) -> Program | None:
    """An operation does all that it does for the next iteration, or for the previous one."""
    found = [
        (path, op, name)
        for path, op in operations(program, Start, RemoteStart, Wait, Compute, Signal, Await)
        for name in sorted({part(op, site).name for site in sites(op, Counter)})
    ]
    if not found:
        return None
    path, op, name = rng.choice(found)
    new = _beside(Counter(name), rng)
    for site in sites(op, Counter):
        if part(op, site) == Counter(name):
            op = with_part(op, site, new)
    return exchanged(program, path, op)


@kind
def other_trips(program: Program, rng: random.Random) -> Program | None:
    """A loop runs once more or once less often."""
    found = operations(program, Loop)
    path, op = rng.choice(found)
    trips = add(op.trips, 1) if rng.random() < 0.5 else maximum(sub(op.trips, 1), 0)
    return exchanged(program, path, replace(op, trips=trips))


@kind
def shorter_modulus(program: Program, rng: random.Random) -> Program | None:
    """The slots of a buffer are used as if it had one less: a slot is filled while it is in use."""
    slots = {buffer.name: buffer.slots for buffer in program.buffers if buffer.slots > 1}
    if not slots:
        return None
    name = rng.choice(sorted(slots))
    count = slots[name]
    for path, site, region in all_sites(program, Region):
        if region.storage == name:
            for inner in sites(region.slot, Binary):
                binary = part(region.slot, inner)
                if binary.op == "%" and binary.right == Const(count):
                    where = (*site, "slot", *inner, "right")
                    program = with_part_of(program, path, where, Const(count - 1))
    return program

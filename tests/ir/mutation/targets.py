"""Another buffer, slot, row, semaphore or operand than the right one."""

from __future__ import annotations

import random
from dataclasses import replace

from schedc.ir.expr import Const, Expr, add, evaluate, leaves, mod
from schedc.ir.program import Await, Compute, Program, Region, RemoteStart, SemaphoreRef, Signal, Start, Wait
from tests.ir.mutation.edit import all_sites, exchanged, operations, with_part, with_part_of
from tests.ir.mutation.registry import kind

TILE = 8
"""Rows of a tile, the smallest that buffers and transfers are made of."""


def _next(index: Expr, count: int, step: int) -> Expr:
    if not list(leaves(index)):
        value = evaluate(index, lambda _: 0, lambda _, __: 0)
        return Const((value + step) % count)
    return mod(add(index, step), count)


def sizes(program: Program) -> dict[str, int]:
    """Rows of every buffer and array, all slots together."""
    buffers = {buffer.name: buffer.rows * buffer.slots for buffer in program.buffers}
    return buffers | {array.name: array.rows for array in program.arrays}


def _wrong_slot(program: Program, rng: random.Random, *within: type) -> Program | None:
    slots = {buffer.name: buffer.slots for buffer in program.buffers}
    found = [s for s in all_sites(program, Region, *within) if slots.get(s[2].storage, 1) > 1]
    if not found:
        return None
    path, site, region = rng.choice(found)
    count = slots[region.storage]
    return with_part_of(program, path, site, replace(region, slot=_next(region.slot, count, rng.randrange(1, count))))


@kind
def wrong_slot_of_transfer(program: Program, rng: random.Random) -> Program | None:
    """A transfer goes to, or comes from, another slot."""
    return _wrong_slot(program, rng, Start, RemoteStart)


@kind
def wrong_slot_of_compute(program: Program, rng: random.Random) -> Program | None:
    """A computation uses another slot."""
    return _wrong_slot(program, rng, Compute)


@kind
def retarget_transfer(program: Program, rng: random.Random) -> Program | None:
    """A transfer goes to, or comes from, another buffer or array."""
    return _other_storage(program, rng, Start, RemoteStart)


@kind
def wrong_operand(program: Program, rng: random.Random) -> Program | None:
    """A computation uses another buffer."""
    return _other_storage(program, rng, Compute)


def _other_storage(program: Program, rng: random.Random, *within: type) -> Program | None:
    known = sizes(program)
    buffers = {buffer.name for buffer in program.buffers}
    path, site, region = rng.choice(all_sites(program, Region, *within))
    same_kind = [
        name
        for name, rows in known.items()
        if name != region.storage and rows >= region.rows and (name in buffers) == (region.storage in buffers)
    ]
    if not same_kind:
        return None
    return with_part_of(program, path, site, Region(rng.choice(same_kind), region.rows))


@kind
def reverse_transfer(program: Program, rng: random.Random) -> Program | None:
    """A transfer copies from its target to its source."""
    path, op = rng.choice(operations(program, Start, RemoteStart))
    return exchanged(program, path, replace(op, source=op.target, target=op.source))


@kind
def swap_operands(program: Program, rng: random.Random) -> Program | None:
    """Two operands of a computation change places."""
    path, op = rng.choice(operations(program, Compute))
    pairs = [
        (a, b)
        for a in range(len(op.operands))
        for b in range(a)
        if op.operands[a].region.rows == op.operands[b].region.rows
    ]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    changed = with_part(op, ("operands", a, "region"), op.operands[b].region)
    return exchanged(program, path, with_part(changed, ("operands", b, "region"), op.operands[a].region))


@kind
def read_too_much(program: Program, rng: random.Random) -> Program | None:
    """A computation uses a tile more than its operand has."""
    known = sizes(program)
    found = [s for s in all_sites(program, Region, Compute) if s[2].rows + TILE <= known[s[2].storage]]
    if not found:
        return None
    path, site, region = rng.choice(found)
    return with_part_of(program, path, site, replace(region, rows=region.rows + TILE))


@kind
def shift_region(program: Program, rng: random.Random) -> Program | None:
    """A region begins a tile later, or a tile earlier."""
    path, site, region = rng.choice(all_sites(program, Region))
    if rng.random() < 0.5 and list(leaves(region.offset)):
        return with_part_of(program, path, site, replace(region, offset=add(region.offset, -TILE)))
    return with_part_of(program, path, site, replace(region, offset=add(region.offset, TILE)))


@kind
def out_of_range(program: Program, rng: random.Random) -> Program | None:
    """A region lies behind the end of its storage, or a semaphore behind its last element."""
    known = sizes(program)
    if rng.random() < 0.3:
        counts = {semaphore.name: semaphore.count for semaphore in program.semaphores}
        path, site, ref = rng.choice(all_sites(program, SemaphoreRef))
        return with_part_of(program, path, site, replace(ref, index=add(ref.index, counts[ref.name])))
    path, site, region = rng.choice(all_sites(program, Region))
    return with_part_of(program, path, site, replace(region, offset=add(region.offset, known[region.storage])))


def _wrong_semaphore(program: Program, rng: random.Random, *within: type) -> Program | None:
    kinds = {semaphore.name: semaphore for semaphore in program.semaphores}
    found = all_sites(program, SemaphoreRef, *within)
    if not found:
        return None
    path, site, ref = rng.choice(found)
    mine = kinds[ref.name]
    others = [s for s in program.semaphores if s.kind == mine.kind and s.name != ref.name]
    if mine.count > 1 and (not others or rng.random() < 0.5):
        step = rng.randrange(1, mine.count)
        return with_part_of(program, path, site, replace(ref, index=_next(ref.index, mine.count, step)))
    return with_part_of(program, path, site, SemaphoreRef(rng.choice(others).name)) if others else None


@kind
def wrong_semaphore_of_start(program: Program, rng: random.Random) -> Program | None:
    """A transfer signals another semaphore."""
    return _wrong_semaphore(program, rng, Start, RemoteStart)


@kind
def wrong_semaphore_of_wait(program: Program, rng: random.Random) -> Program | None:
    """A wait takes from another semaphore."""
    return _wrong_semaphore(program, rng, Wait)


@kind
def wrong_credit(program: Program, rng: random.Random) -> Program | None:
    """A signal or an await is for another regular semaphore."""
    return _wrong_semaphore(program, rng, Signal, Await)


@kind
def one_semaphore_for_all(program: Program, rng: random.Random) -> Program | None:
    """All transfers of a semaphore with several elements share the first one."""
    found = [semaphore.name for semaphore in program.semaphores if semaphore.count > 1]
    if not found:
        return None
    name = rng.choice(found)
    for path, site, ref in all_sites(program, SemaphoreRef):
        if ref.name == name:
            program = with_part_of(program, path, site, SemaphoreRef(name))
    return program

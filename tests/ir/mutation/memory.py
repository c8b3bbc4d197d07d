"""Buffers at wrong addresses, and of wrong sizes."""

from __future__ import annotations

import random
from dataclasses import replace

from schedc.ir.program import BLOCKS, Buffer, Program, Region, walk
from tests.ir.mutation.edit import part, sites
from tests.ir.mutation.registry import kind

TILE = 8


def _placed(program: Program, name: str, address: int) -> Program | None:
    """The program with a buffer at another address; the pool grows if that is behind its end."""
    buffer = program.buffer(name)
    if buffer.address == address or address < 0:
        return None
    end = address + buffer.rows * buffer.slots
    pools = tuple(replace(p, rows=max(p.rows, end)) if p.name == buffer.pool else p for p in program.pools)
    buffers = tuple(replace(b, address=address) if b.name == name else b for b in program.buffers)
    return replace(program, pools=pools, buffers=buffers)


def _pairs(program: Program) -> list[tuple[Buffer, Buffer]]:
    return [(a, b) for a in program.buffers for b in program.buffers if a.pool == b.pool and a.name != b.name]


def _mentioned(program: Program) -> dict[str, tuple[int, int]]:
    """The first and the last operation in the text that names a buffer."""
    spans: dict[str, tuple[int, int]] = {}
    for index, op in enumerate(walk(program.body)):
        if not isinstance(op, BLOCKS):
            for site in sites(op, Region):
                name = part(op, site).storage
                spans[name] = spans.get(name, (index, index))[0], index
    return spans


@kind
def overlap_buffers(program: Program, rng: random.Random) -> Program | None:
    """A buffer lies on rows of another one."""
    pairs = _pairs(program)
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    assert b.address is not None
    rows = range(b.address, b.address + b.rows * b.slots, TILE)
    return _placed(program, a.name, rng.choice(rows))


@kind
def shrink_live_range(program: Program, rng: random.Random) -> Program | None:
    """A buffer is placed on one that was used before it, as if that were not needed any more."""
    spans = _mentioned(program)
    pairs = [
        (a, b)
        for a, b in _pairs(program)
        if a.name in spans and b.name in spans and spans[b.name][0] < spans[a.name][0]
    ]
    if not pairs:
        return None
    later, earlier = rng.choice(pairs)
    assert earlier.address is not None
    return _placed(program, later.name, earlier.address)


@kind
def forget_the_loop(program: Program, rng: random.Random) -> Program | None:
    """Two buffers share rows because their uses are apart in the text, as if no loop came back to them."""
    spans = _mentioned(program)
    pairs = [
        (a, b)
        for a, b in _pairs(program)
        if a.name in spans and b.name in spans and spans[b.name][1] < spans[a.name][0]
    ]
    if not pairs:
        return None
    later, earlier = rng.choice(pairs)
    assert earlier.address is not None
    return _placed(program, later.name, earlier.address)


@kind
def shift_address(program: Program, rng: random.Random) -> Program | None:
    """A buffer lies a tile too low or too high."""
    buffer = rng.choice(program.buffers)
    assert buffer.address is not None
    return _placed(program, buffer.name, buffer.address + rng.choice((-TILE, TILE)))


@kind
def narrow_slots(program: Program, rng: random.Random) -> Program | None:
    """The slots of a buffer lie a tile closer than they are long."""
    found = [b for b in program.buffers if b.slots > 1 and b.rows > TILE]
    if not found:
        return None
    name = rng.choice(found).name
    return replace(
        program, buffers=tuple(replace(b, rows=b.rows - TILE) if b.name == name else b for b in program.buffers)
    )


@kind
def fewer_slots(program: Program, rng: random.Random) -> Program | None:
    """A buffer has a slot less than is used."""
    found = [b for b in program.buffers if b.slots > 1]
    if not found:
        return None
    name = rng.choice(found).name
    return replace(
        program, buffers=tuple(replace(b, slots=b.slots - 1) if b.name == name else b for b in program.buffers)
    )

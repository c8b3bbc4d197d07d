"""Times when nobody can read what a buffer holds, as it is written as a whole before it is used again.

A definition is an operation that writes all of a buffer and reads none of it, or a loop whose iterations write all of
it part by part. In the block where it stands, from behind the last operation that touches the buffer, or from the
beginning of the block, everything leads to the definition and nothing comes between. No transfer from or to the
buffer is on its way there either: a wait would be needed before the definition, and waits count as touching all
buffers of their semaphore. (What else may tell of the end of a remote transfer, a signal of the peer or a barrier,
counts for buffers that are sent.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from schedc.ir.expr import Const
from schedc.ir.live.known import known
from schedc.ir.program import (
    BLOCKS,
    Await,
    Barrier,
    Buffer,
    Loop,
    Op,
    Phase,
    Program,
    Region,
    RemoteStart,
    numbered,
    size,
    walk,
)
from schedc.ir.uses import operands

_MOST_TRIPS = 64

Numbered = tuple[int, int, Op]
"""An operation, its number in the order of `walk`, and the number after all that is in it."""


def dead_before_definitions(program: Program, touched: Mapping[int, set[str]]) -> dict[str, list[tuple[int, int]]]:
    """By buffer the times first..end-1; `touched` says which buffers an operation touches, by its number."""
    buffers = {buffer.name: buffer for buffer in program.buffers}
    sent = {op.source.storage for op in walk(program.body) if isinstance(op, RemoteStart)}
    dead: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def visit(first: int, ops: tuple[Op, ...]) -> None:
        free: dict[str, int] = {}
        """From where on nothing in this block touched the buffer."""
        for begin, end, op in _siblings(first, ops):
            inside = set().union(*(touched.get(i, ()) for i in range(begin, end)))
            parts = list(walk((op,)))
            if any(isinstance(part, (Await, Barrier)) for part in parts):
                inside |= sent
            for name in _defined(op, buffers):
                start = free.get(name, first)
                if start < begin:
                    dead[name].append((start, begin))
            for name in inside:
                free[name] = end
            if isinstance(op, BLOCKS):
                visit(begin + 1, op.body)

    visit(0, program.body)
    return dead


def _siblings(first: int, ops: tuple[Op, ...]) -> Iterator[Numbered]:
    """The operations of a block in order, those of its phases among them."""
    for number, op in numbered(ops, first):
        if isinstance(op, Phase):
            yield from _siblings(number + 1, op.body)
        else:
            yield number, number + size(op), op


def _defined(op: Op, buffers: Mapping[str, Buffer]) -> set[str]:
    """The buffers that the operation defines."""
    if not isinstance(op, Loop):
        return _whole([op], [{}], buffers)
    if not isinstance(op.trips, Const) or not 1 <= op.trips.value <= _MOST_TRIPS:
        return set()
    body = [inner for _, _, inner in _siblings(0, op.body)]
    nested = [part for inner in body if isinstance(inner, BLOCKS) for part in walk((inner,))]
    elsewhere = {region.storage for part in nested for region in (*_written(part), *_used(part))}
    flat = [inner for inner in body if not isinstance(inner, BLOCKS)]
    return _whole(flat, [{op.counter: trip} for trip in range(op.trips.value)], buffers) - elsewhere


def _whole(ops: Sequence[Op], rounds: list[dict[str, int]], buffers: Mapping[str, Buffer]) -> set[str]:
    """The buffers of which the operations, for these values of counters, write every row and read none."""
    used = {region.storage for op in ops for region in _used(op)}
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for op in ops:
        for region in _written(op):
            if region.storage in buffers and region.storage not in used:
                for counters in rounds:
                    offset, slot = known(region.offset, counters), known(region.slot, counters)
                    if offset is not None and slot is not None:
                        first = slot * buffers[region.storage].rows + offset
                        spans[region.storage].append((first, first + region.rows))
    return {name for name, found in spans.items() if _cover(found, buffers[name].rows * buffers[name].slots)}


def _cover(spans: list[tuple[int, int]], rows: int) -> bool:
    """Whether every row below `rows` is in one of the spans [first, end)."""
    reached = 0
    for first, end in sorted(spans):
        if first > reached:
            break
        reached = max(reached, end)
    return reached >= rows


def _written(op: Op) -> list[Region]:
    """As a whole, on this device."""
    here = not isinstance(op, RemoteStart)
    return [operand.region for operand in operands(op) if here and operand.access == "write"]


def _used(op: Op) -> list[Region]:
    return [operand.region for operand in operands(op) if operand.reads]

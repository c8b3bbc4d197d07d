"""VMEM as a map: addresses up, time to the right, every buffer a rectangle while it is live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schedc.inspect.history import History
from schedc.ir.allocate import DoesNotFit
from schedc.ir.live import live_ranges
from schedc.ir.program import ROW_BYTES, Buffer, Program

Kind = Literal["live", "arriving", "held"]
"""Live as the allocator counts it; on its way into a slot; there until its last reader."""


@dataclass(frozen=True, slots=True)
class Rect:
    """Rows `row..row+rows-1` of all pools one after the other, from `began` to `ended` (ns)."""

    buffer: str
    kind: Kind
    row: int
    rows: int
    began: float
    ended: float
    slot: int | None = None
    transfer: int | None = None


@dataclass(frozen=True)
class VmemMap:
    step_ns: float
    pools: tuple[tuple[str, int, int], ...]
    """(name, first row, rows)"""
    buffers: tuple[tuple[Buffer, int], ...]
    """With the row at which each lies."""
    rects: tuple[Rect, ...]
    limit_rows: int
    """What a device's kernels may take."""
    peak_rows: int
    """Most rows of live buffers at once."""
    peak_ns: float
    """The first time at which they are."""
    compiler: tuple[tuple[str, int], ...] = ()
    """(kind, bytes) that the TPU compiler takes beside the pools, if it was asked: `internal`, `spill` …"""
    clash: tuple[str, ...] = ()
    """Buffers that cannot be in VMEM together, if the program does not fit."""

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows in self.pools)

    @property
    def compiler_rows(self) -> int:
        return -(-sum(size for _, size in self.compiler) // ROW_BYTES)

    @property
    def slack_rows(self) -> int:
        """What neither pools nor compiler take; negative if it does not fit."""
        return self.limit_rows - self.rows - self.compiler_rows

    def at_peak(self) -> list[tuple[Buffer, int]]:
        """What is live at the peak, the largest first."""
        live = {r.buffer for r in self.rects if r.kind == "live" and r.began <= self.peak_ns < r.ended}
        found = [(buffer, buffer.rows * buffer.slots) for buffer, _ in self.buffers if buffer.name in live]
        return sorted(found, key=lambda item: (-item[1], item[0].name))


def vmem_map(
    history: History,
    limit_bytes: int,
    compiler: Mapping[str, int] | None = None,
    refusal: DoesNotFit | None = None,
) -> VmemMap:
    """The map of a program with addresses. `compiler` are bytes by kind of its report, without the pools'."""
    program = history.program
    bases, pools = _bases(program)
    placed = tuple((b, bases[b.pool] + b.address) for b in program.buffers if b.address is not None)
    where = {buffer.name: (buffer, row) for buffer, row in placed}
    rects = [*_live(history, where), *_filled(history, where)]
    peak, when = _peak(rects)
    return VmemMap(
        step_ns=history.timeline.step_ns,
        pools=pools,
        buffers=placed,
        rects=tuple(rects),
        limit_rows=limit_bytes // ROW_BYTES,
        peak_rows=peak,
        peak_ns=when,
        compiler=tuple((kind, size) for kind, size in (compiler or {}).items() if size),
        clash=tuple(clash.buffer for clash in refusal.clashes) if refusal else (),
    )


def _bases(program: Program) -> tuple[dict[str, int], tuple[tuple[str, int, int], ...]]:
    bases: dict[str, int] = {}
    pools = []
    row = 0
    for pool in program.pools:
        bases[pool.name] = row
        pools.append((pool.name, row, pool.rows))
        row += pool.rows
    return bases, tuple(pools)


def _live(history: History, where: Mapping[str, tuple[Buffer, int]]) -> Iterable[Rect]:
    """Live ranges are of operations: a buffer is live from when the core comes into one until it comes out."""
    executed = np.array([step.op for step in history.steps])
    times = np.array([*(step.began for step in history.steps), history.timeline.step_ns])
    for live in live_ranges(history.program):
        if live.buffer not in where:
            continue
        buffer, row = where[live.buffer]
        mask = np.zeros(len(history.ops) + 1, dtype=np.int8)
        for first, end in live.spans:
            mask[first:end] = 1
        changes = np.diff(mask[executed], prepend=0, append=0)
        for start, stop in zip(np.flatnonzero(changes == 1), np.flatnonzero(changes == -1), strict=True):
            yield Rect(buffer.name, "live", row, buffer.rows * buffer.slots, float(times[start]), float(times[stop]))


def _filled(history: History, where: Mapping[str, tuple[Buffer, int]]) -> Iterable[Rect]:
    for occupant in history.occupants:
        transfer, place = history.transfers[occupant.transfer], occupant.place
        buffer, row = where[place.storage]
        slot = place.row // buffer.rows
        at = (row + place.row, place.rows)
        yield Rect(buffer.name, "arriving", *at, transfer.issued, transfer.ended, slot, occupant.transfer)
        last = occupant.last_use if occupant.last_use is not None else occupant.wait
        until = history.steps[last].ended if last is not None else transfer.ended
        if until > transfer.ended:
            yield Rect(buffer.name, "held", *at, transfer.ended, until, slot, occupant.transfer)


def _peak(rects: Iterable[Rect]) -> tuple[int, float]:
    changes: dict[float, int] = {}
    for rect in rects:
        if rect.kind == "live":
            changes[rect.began] = changes.get(rect.began, 0) + rect.rows
            changes[rect.ended] = changes.get(rect.ended, 0) - rect.rows
    load = most = 0
    when = 0.0
    for time in sorted(changes):
        load += changes[time]
        if load > most:
            most, when = load, time
    return most, when

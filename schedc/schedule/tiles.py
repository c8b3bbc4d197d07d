"""Cutting streams into tiles, and choosing the cache's tile: what the built-in policies share."""

from __future__ import annotations

from math import isfinite

from schedc.ir.program import ROW_BYTES
from schedc.schedule.plan import Problem, Ring, StreamInfo

TILE_COST_ROWS = 300
"""What one more transfer costs, in rows: 45 ns a descriptor at 3.46 TB/s is 300 rows (FACTS: stream timings)."""


def slot_rows(slot_mib: float, setting: str = "slot_mib") -> int:
    """Rows of a slot of `slot_mib` MiB, which `setting` gives. Raises ValueError if that is no size."""
    if not (isfinite(slot_mib) and slot_mib > 0):
        raise ValueError(f"{setting} is {slot_mib:g}; it must be a number above 0")
    return int(slot_mib * 2**20) // ROW_BYTES


def cut(stream: StreamInfo, most_rows: int) -> int:
    """Units a tile: as many as fit `most_rows` (at least one), fewest padded rows and transfers in all."""
    most = max(1, min(stream.units, most_rows // stream.unit_rows))

    def waste(units: int) -> tuple[int, int]:
        tiles = -(-stream.units // units)
        return (tiles * units - stream.units) * stream.unit_rows + tiles * TILE_COST_ROWS, tiles

    return min(range(1, most + 1), key=waste)


def tiles_for(problem: Problem, most_rows: int) -> dict[str, int]:
    """Units a tile of every stream; vectors move whole."""
    sizes = {stream.name: cut(stream, most_rows) for stream in problem.matrices()}
    return sizes | {stream.name: stream.units for stream in problem.vectors()}


def chosen_tiles(problem: Problem, most_rows: int) -> dict[str, int]:
    """As `tiles_for`, of the streams of chosen members."""
    sizes = {stream.name: cut(stream, most_rows) for stream in problem.chosen_matrices()}
    return sizes | {stream.name: stream.units for stream in problem.chosen_vectors()}


def chosen_rings(problem: Problem, slots: int, ahead: int) -> tuple[Ring, ...]:
    """A ring for the matrices of chosen members and one for their vectors, as far as there are any."""
    matrices = tuple(stream.name for stream in problem.chosen_matrices())
    vectors = tuple(stream.name for stream in problem.chosen_vectors())
    rings = (Ring("experts", matrices, slots, ahead), Ring("experts_small", vectors, min(slots, 2), min(ahead, 2)))
    return tuple(ring for ring in rings if ring.streams)


def kv_tile(problem: Problem, share: float = 0.25, slots: int = 2) -> int:
    """The largest cache tile whose buffers take at most `share` of the capacity (the smallest if none does)."""
    fits = [t for t in problem.kv_tokens if problem.kv_rows(t, slots) <= share * problem.capacity_rows]
    return fits[0] if fits else problem.kv_tokens[-1]


def earliest_issue(problem: Problem) -> dict[str, str]:
    """Every transfer outside the streams as early as it may."""
    return {prefetch.name: prefetch.earliest for prefetch in problem.prefetches}

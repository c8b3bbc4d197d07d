"""What the policy decided: rings, tiles, the cache's tile, where other transfers are issued."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.compiler.decisions.decision import Alternative, Decision
from schedc.compiler.pipeline import Request
from schedc.ir.program import ROW_BYTES
from schedc.lower.step import StepLowering
from schedc.schedule.build import Schedule, problem_of
from schedc.schedule.plan import Plan, Problem, Ring, StreamInfo
from schedc.schedule.registry import POLICIES
from schedc.schedule.tiles import TILE_COST_ROWS

_CUTS = 2
"""Other tiles of a stream that fit its slots and are shown: those that waste least."""


def decisions(request: Request, made: Schedule) -> Iterator[Decision]:
    """Without the predicted steps of other policies, which take a simulation each."""
    problem, plan = problem_of(StepLowering(request.spec, request.shape), request.target), made.plan
    given = ", ".join(f"{name} {value:g}" for name, value in (request.settings or {}).items())
    others = tuple(Alternative(name, None, "not predicted") for name in POLICIES if name != request.policy)
    yield Decision("policy", "order of the transfers", request.policy, f"asked for, with {given or 'no settings'}",
                   "µs a step", None, others)  # fmt: skip
    streams = {stream.name: stream for stream in problem.streams}
    for ring in plan.rings:
        yield _ring(ring, plan, streams, problem)
    for name, units in plan.tile_units.items():
        if name in streams and streams[name].units > 1:
            yield _tile(streams[name], units, plan, _slot_rows(plan, streams, name))
    yield _cache(problem, plan)
    for prefetch in problem.prefetches:
        at = plan.issue.get(prefetch.name, prefetch.latest)
        latest = () if at == prefetch.latest else (Alternative(prefetch.latest, None, "the latest place"),)
        earliest = () if at == prefetch.earliest else (Alternative(prefetch.earliest, None, "the earliest place"),)
        yield Decision("issue", prefetch.name, f"at the beginning of {at}", "by the policy", "", None,
                       (*earliest, *latest))  # fmt: skip


def _slot_rows(plan: Plan, streams: dict[str, StreamInfo], name: str) -> int:
    """Of the ring that a stream goes through: its largest tile."""
    ring = next(ring for ring in plan.rings if name in ring.streams)
    return max(plan.tile_units[other] * streams[other].unit_rows for other in ring.streams)


def _ring(ring: Ring, plan: Plan, streams: dict[str, StreamInfo], problem: Problem) -> Decision:
    slot = _slot_rows(plan, streams, ring.streams[0]) * ROW_BYTES
    room = problem.capacity_rows * ROW_BYTES
    others = tuple(
        Alternative(f"{slots} slots", slots * slot, "" if slots * slot <= room else "more than there is")
        for slots in sorted({max(1, ring.slots // 2), ring.slots - 1, ring.slots + 1, 2 * ring.slots})
        if slots >= 1 and slots != ring.slots
    )
    through = ", ".join(ring.streams[:4]) + (", …" if len(ring.streams) > 4 else "")
    return Decision(
        "ring",
        f"{ring.name} ({through})",
        f"{ring.slots} slots, {ring.ahead} tiles ahead",
        "by the policy and its settings",
        "bytes of VMEM",
        ring.slots * slot,
        others,
    )


def _tile(stream: StreamInfo, units: int, plan: Plan, slot: int) -> Decision:
    """`slot` is the size of its ring's slots in rows. Cost: padding, and of the transfers as rows of the HBM's time."""
    ring = next(ring for ring in plan.rings if stream.name in ring.streams)
    cuts = sorted((_waste(stream, other), other) for other in range(1, stream.units + 1) if other != units)
    within = [cut for cut in cuts if cut[1] * stream.unit_rows <= slot][:_CUTS]
    larger = min((cut for cut in cuts if cut[1] * stream.unit_rows > slot), key=lambda cut: cut[1], default=None)
    others = [*within, *([larger] if larger else [])]
    return Decision(
        "tile",
        stream.name,
        f"{-(-stream.units // units)} tiles of {units} of its {stream.units} panels",
        f"in the slots of ring {ring.name}, {units * stream.unit_rows * ROW_BYTES:,} bytes each",
        "rows lost to padding and transfers",
        _waste(stream, units),
        tuple(_cut(stream, waste, other, slot) for waste, other in others),
    )


def _cut(stream: StreamInfo, waste: int, units: int, slot: int) -> Alternative:
    size = units * stream.unit_rows
    note = f"{size * ROW_BYTES:,} bytes each" + (", more than a slot" if size > slot else "")
    return Alternative(f"{-(-stream.units // units)} tiles of {units}", waste, note)


def _waste(stream: StreamInfo, units: int) -> int:
    """As `tiles.cut` counts it."""
    tiles = -(-stream.units // units)
    return (tiles * units - stream.units) * stream.unit_rows + tiles * TILE_COST_ROWS


def _cache(problem: Problem, plan: Plan) -> Decision:
    def rows(tokens: int) -> int:
        return problem.kv_rows(tokens, plan.kv_slots)

    def size(tokens: int) -> int:
        return rows(tokens) * ROW_BYTES

    others = tuple(
        Alternative(f"{tokens} tokens", size(tokens), f"{rows(tokens) / problem.capacity_rows:.0%} of VMEM")
        for tokens in problem.kv_tokens
        if tokens != plan.kv_tokens
    )
    share = rows(plan.kv_tokens) / problem.capacity_rows
    return Decision(
        "kv tile",
        "tile of the cache",
        f"{plan.kv_tokens} tokens",
        f"by the policy; its buffers take {share:.0%} of VMEM",
        "bytes of VMEM",
        size(plan.kv_tokens),
        others,
    )

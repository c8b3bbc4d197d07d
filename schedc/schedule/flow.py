"""Whether tiles flow through a ring: each is started before it is waited for, into a slot that is free by then.

before:  up waits for tile 5, which is started as tile 2 of qkv has been used, in a ring of 3 ahead
after:   deferred[qkv] = down, behind up: tile 5 would never arrive

Steps through the phases of a plan as the program does, the trips of a segment as often as tiles of one trip can meet
those of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schedc.schedule.plan import PhaseInfo, Plan, Problem, Ring, SegmentInfo


@dataclass(frozen=True)
class Moment:
    """A tile is waited for, has been used, or lets the tile `ahead` of it start. `tile`: its number in the ring."""

    kind: str
    tile: int
    stream: str
    phase: str


def ordered(problem: Problem, plan: Plan) -> tuple[SegmentInfo, ...]:
    """The segments with their phases in the order of the plan."""
    segments = []
    for segment in problem.segments:
        order = plan.order.get(segment.name, segment.order)
        place = {phase: index for index, phase in enumerate(order)}
        phases = sorted(segment.phases, key=lambda phase: place[phase.each or phase.name])
        segments.append(SegmentInfo(segment.name, segment.trips, tuple(phases)))
    return tuple(segments)


def ring_faults(problem: Problem, plan: Plan) -> list[str]:
    """What keeps the rings of a plan that can otherwise be built from running; the first fault of each."""
    chosen = {stream.name for stream in problem.chosen_matrices() + problem.chosen_vectors()}
    segments = ordered(problem, plan)
    faults = [_fault(problem, plan, segments, ring) for ring in plan.rings if not chosen.intersection(ring.streams)]
    return [fault for fault in faults if fault is not None]


def _fault(problem: Problem, plan: Plan, segments: tuple[SegmentInfo, ...], ring: Ring) -> str | None:
    begun, used, started = ring.begin is None, set[int](), set(range(ring.ahead))
    for moment in moments(problem, plan, segments, ring):
        at, tile = f"{moment.stream} in {moment.phase}", moment.tile
        if moment.kind == "begin":
            begun = True
        elif moment.kind == "use":
            used.add(tile)
        elif moment.kind == "refill":
            later = tile + ring.ahead
            started.add(later)
            if later >= ring.slots and later - ring.slots not in used:
                return f"ring {ring.name} starts a tile as {at} lets it, in a slot that is still in use; give it slots"
        elif not ring.ahead:
            if tile >= ring.slots and tile - ring.slots not in used:
                return f"ring {ring.name} of {ring.slots} slots has none free for {at}; give it more"
        elif not begun:
            return f"ring {ring.name} begins at {ring.begin}, and {at} uses it before"
        elif tile not in started:
            return (
                f"ring {ring.name} does not start {at} before it is waited for: {ring.ahead} tiles ahead of it are "
                f"used or deferred only later; keep more ahead, or defer less"
            )
    return None


def moments(problem: Problem, plan: Plan, segments: tuple[SegmentInfo, ...], ring: Ring) -> Iterator[Moment]:
    """What happens to the tiles of a ring, in the order of the program."""
    units = {stream.name: stream.units for stream in problem.streams}
    tiles = {name: -(-units[name] // plan.tile_units[name]) for name in ring.streams}
    number = 0
    for segment in segments:
        own = [phase for phase in segment.phases if phase.each is None]
        uses = _uses(own, ring)
        first, count = {}, 0
        for name in sorted(uses, key=lambda name: uses[name][1]):
            first[name] = count
            count += tiles[name]
        trips = min(segment.trips, 2 + ring.slots // count) if count else 1
        for _ in range(trips):
            yield from _trip(own, plan, ring, {n: (number + at, tiles[n], *uses[n]) for n, at in first.items()})
            number += count


def _uses(phases: list[PhaseInfo], ring: Ring) -> Mapping[str, tuple[int, int]]:
    """Stream → the first and the last phase that uses it."""
    found: dict[str, tuple[int, int]] = {}
    for place, phase in enumerate(phases):
        for name in (phase.stream, phase.vectors):
            if name in ring.streams and name is not None:
                found[name] = found.get(name, (place, place))[0], place
    return found


def _trip(
    phases: list[PhaseInfo], plan: Plan, ring: Ring, uses: Mapping[str, tuple[int, int, int, int]]
) -> Iterator[Moment]:
    """`uses`: stream → (number of its first tile, tiles, first and last phase that uses it)."""
    held: dict[str, list[Moment]] = {}
    for place, phase in enumerate(phases):
        if phase.name == ring.begin:
            yield Moment("begin", 0, "", phase.name)
        yield from held.pop(phase.name, ())
        name = phase.vectors or phase.stream
        if name not in uses or name is None:
            continue
        number, count, first, last = uses[name]
        for tile in range(number, number + count):
            if place == first:
                yield Moment("wait", tile, name, phase.name)
            if place == last:
                yield Moment("use", tile, name, phase.name)
                refill = Moment("refill", tile, name, phase.name)
                if phase.name in plan.deferred:
                    held.setdefault(plan.deferred[phase.name], []).append(refill)
                else:
                    yield refill

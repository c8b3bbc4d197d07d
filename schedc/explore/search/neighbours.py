"""Plans beside a plan that differ in what decides the step graph or the rings: tiles, sums, cache tiles, rings.

Orders, slots and issue points are the annealing's (moves.py). Streams that are alike in all layers change together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from schedc.schedule.plan import Plan, Problem, Ring, StreamInfo
from schedc.schedule.tiles import cut
from schedc.weights.layout import WordDtype

TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32)
"""Into how many tiles a stream is cut."""

SLOT_ROWS = tuple(int(mib * 2048) for mib in (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8))
"""Sizes of tiles that all streams of a ring are cut to, in rows of 512 bytes."""

_LAYER = re.compile(r"_\d+_\d+$")


Kind = Callable[[Problem, Plan, Random], Plan]


def alike(streams: Sequence[StreamInfo]) -> list[list[StreamInfo]]:
    """Streams of the same weight in different layers, together; vectors move whole."""
    found: dict[tuple[str, int, int], list[StreamInfo]] = {}
    for stream in streams:
        found.setdefault((_LAYER.sub("", stream.name), stream.unit_rows, stream.units), []).append(stream)
    return [group for group in found.values() if group[0].units > 1]


def neighbour(problem: Problem, plan: Plan, random: Random, kinds: Mapping[Kind, float] | None = None) -> Plan:
    """A plan that differs in one or two of `kinds` (`KINDS` if not given); perhaps one that cannot be built."""
    kinds = KINDS if kinds is None else kinds
    for _ in range(1 + (random.random() < 0.3)):
        (kind,) = random.choices(list(kinds), list(kinds.values()))
        plan = kind(problem, plan, random)
    return plan


def _other_tiles(problem: Problem, plan: Plan, random: Random) -> Plan:
    groups = alike(problem.matrices() + problem.chosen_matrices())
    if not groups:
        return plan
    group = random.choice(groups)
    units = {-(-group[0].units // tiles) for tiles in TILES if tiles <= group[0].units} - {
        plan.tile_units[group[0].name]
    }
    if not units:
        return plan
    chosen = random.choice(sorted(units))
    return resized(problem, plan, {stream.name: chosen for stream in group})


def _other_slot(problem: Problem, plan: Plan, random: Random) -> Plan:
    """All matrices of a ring cut to about one size."""
    matrices = {stream.name: stream for stream in problem.matrices() + problem.chosen_matrices()}
    rings = [ring for ring in plan.rings if any(name in matrices for name in ring.streams)]
    if not rings:
        return plan
    ring, rows = random.choice(rings), random.choice(SLOT_ROWS)
    return resized(problem, plan, {name: cut(matrices[name], rows) for name in ring.streams if name in matrices})


def resized(problem: Problem, plan: Plan, tile_units: Mapping[str, int]) -> Plan:
    """Streams in other tiles, and their rings with as many slots as take the VMEM that they took."""
    unit_rows = {stream.name: stream.unit_rows for stream in problem.streams}
    units = {**plan.tile_units, **tile_units}

    def slot(ring: Ring, sizes: Mapping[str, int]) -> int:
        return max(sizes[name] * unit_rows[name] for name in ring.streams)

    def same_rows(ring: Ring) -> Ring:
        before, after = slot(ring, plan.tile_units), slot(ring, units)
        if before == after or ring.slots == 1:
            return ring
        slots = max(2, min(64, ring.slots * before // after))
        full = ring.ahead == ring.slots
        return replace(ring, slots=slots, ahead=slots if full else min(ring.ahead, slots))

    return replace(plan, tile_units=units, rings=tuple(same_rows(ring) for ring in plan.rings))


def _other_cache_tile(problem: Problem, plan: Plan, random: Random) -> Plan:
    """Of another size, in another number of buffers."""
    return replace(plan, kv_tokens=random.choice(problem.kv_tokens), kv_slots=random.choice((2, 3, 4)))


def _other_sums(problem: Problem, plan: Plan, random: Random) -> Plan:
    return replace(plan, sums="tiles" if plan.sums == "whole" else "whole")


def _other_collective(problem: Problem, plan: Plan, random: Random) -> Plan:
    """Another algorithm for the sums over devices at one site."""
    if not problem.sites:
        return plan
    site = random.choice(list(problem.sites))
    algorithms = [name for name in problem.sites[site] if name != plan.collectives.get(site)]
    if not algorithms:
        return plan
    changed = {**plan.collectives, site: random.choice(algorithms)}
    return replace(plan, collectives=changed)


def _other_wire(problem: Problem, plan: Plan, random: Random) -> Plan:
    """Another format for what devices send to be summed, at one site or at all."""
    if not problem.sites:
        return plan
    wire: WordDtype = random.choice(("bf16", "f32"))
    sites = [random.choice(list(problem.sites))] if random.random() < 0.5 else list(problem.sites)
    return replace(plan, wires={**plan.wires, **dict.fromkeys(sites, wire)})


def _other_members(problem: Problem, plan: Plan, random: Random) -> Plan:
    """Chosen members by number or as they are found, one or two at once."""
    names = [selection.name for selection in problem.selections]
    if random.random() < 0.5:
        by_number = any(order == "number" for order in plan.orders.values())
        return replace(plan, orders={} if by_number else dict.fromkeys(names, "number"))
    at_once = random.choice((1, 2))
    return replace(plan, at_once=dict.fromkeys(names, at_once) if at_once > 1 else {})


def _other_rings(problem: Problem, plan: Plan, random: Random) -> Plan:
    """Streams that are alike get a ring of their own, or join another ring."""
    chosen = {stream.name for stream in problem.chosen_matrices() + problem.chosen_vectors()}
    groups = [group for group in alike(problem.matrices()) if group[0].name not in chosen]
    if not groups:
        return plan
    names = {stream.name for stream in random.choice(groups)}
    home = next(ring for ring in plan.rings if names & set(ring.streams))
    others = [ring for ring in plan.rings if ring is not home and not chosen.intersection(ring.streams)]
    rest = tuple(name for name in home.streams if name not in names)
    moved = tuple(name for name in home.streams if name in names)
    rings = [replace(ring, streams=rest) if ring is home else ring for ring in plan.rings]
    if others and random.random() < 0.5:
        target = random.choice(others)
        rings = [replace(ring, streams=_in_order(problem, ring.streams + moved)) if ring is target else ring
                 for ring in rings]  # fmt: skip
    elif rest:
        slots = max(1, home.slots // 2)
        used = {ring.name for ring in plan.rings}
        name = next(f"ring_{number}" for number in range(len(used) + 1) if f"ring_{number}" not in used)
        rings.insert(rings.index(next(ring for ring in rings if ring.name == home.name)) + 1,
                     Ring(name, moved, slots, slots))  # fmt: skip
    else:
        return plan
    return replace(plan, rings=tuple(ring for ring in rings if ring.streams))


def _in_order(problem: Problem, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stream.name for stream in problem.streams if stream.name in names)


ORDER: Mapping[Kind, float] = {
    _other_tiles: 4.0,
    _other_slot: 2.0,
    _other_rings: 1.0,
    _other_sums: 1.0,
    _other_cache_tile: 0.7,
    _other_members: 0.3,
}
"""How often each is tried. None changes what is exchanged, but for sums that are sent by tiles or whole."""

COLLECTIVES: Mapping[Kind, float] = {_other_collective: 1.5}

WIRES: Mapping[Kind, float] = {_other_wire: 1.0}
"""Changes numbers."""

KINDS: Mapping[Kind, float] = {**ORDER, **COLLECTIVES}

"""All weights pass through one ring of equal slots in the order of their use.

As soon as a tile has been used, its slot is refilled with the tile `depth` places further,
across phases and layers, so that the stream from HBM never waits for a phase to end. Caches
are fetched at the start of their layer. The weights of chosen experts pass through a ring of
their own, which starts as soon as the router has chosen. Source: the ring of the published Muse
Spark kernel.
"""

from collections.abc import Mapping

from schedc.schedule.plan import Plan, Problem, Ring, StreamInfo
from schedc.schedule.tiles import chosen_rings, chosen_tiles, earliest_issue, kv_tile, slot_rows, tiles_for

DEEPEST = 8
"""Published: a ring deeper than 8 slots of 2 MiB gains nothing."""

SHARE = 0.65
"""How much of VMEM an automatic ring may take."""

MOST_EXPERT_SLOTS = 4
"""Published: more than four experts in flight are slower, since they share the bandwidth."""

EXPERT_SHARE = 0.3
"""How much of VMEM an automatic ring of experts may take."""


def ring(
    problem: Problem,
    *,
    depth: int = 0,
    slot_mib: float = 2.0,
    expert_slots: int = 0,
    expert_mib: float = 4.0,
    experts_at_once: int = 1,
    experts_by_number: int = 0,
    whole_sums: int = 0,
    kv_slots: int = 2,
) -> Plan:
    """`depth` slots of at least `slot_mib` MiB (at least one unit of every stream); 0: up to 8, as VMEM allows.

    `expert_slots` and `expert_mib` are the same of the ring of chosen experts; 0: up to 4. `experts_at_once` of them
    stand in a pass of their loop, in the order of the rows' choices, or by their number if that is not 0.
    Partial outputs are summed over the devices tile by tile, unless `whole_sums` is not 0. A cache has `kv_slots`
    buffers for older tiles.
    """
    for name, slots in (("depth", depth), ("expert_slots", expert_slots)):
        if slots < 0:
            raise ValueError(f"{name} is {slots}; it must be 0 (as VMEM allows) or more")
    sizes = tiles_for(problem, slot_rows(slot_mib)) | chosen_tiles(problem, slot_rows(expert_mib, "expert_mib"))
    depth = depth or _slots(problem.matrices(), sizes, SHARE * problem.capacity_rows, DEEPEST)
    expert_slots = expert_slots or _slots(
        problem.chosen_matrices(), sizes, EXPERT_SHARE * problem.capacity_rows, MOST_EXPERT_SLOTS
    )
    return Plan(
        rings=(
            Ring("weights", tuple(stream.name for stream in problem.matrices()), slots=depth, ahead=depth),
            Ring("small", tuple(stream.name for stream in problem.vectors()), slots=2, ahead=2),
            *chosen_rings(problem, slots=expert_slots, ahead=expert_slots),
        ),
        tile_units=sizes,
        kv_tokens=kv_tile(problem, slots=kv_slots),
        kv_slots=kv_slots,
        issue=earliest_issue(problem),
        sums="whole" if whole_sums else "tiles",
        orders={selection.name: "number" for selection in problem.selections} if experts_by_number else {},
        at_once={selection.name: experts_at_once for selection in problem.selections},
    )


def _slots(streams: tuple[StreamInfo, ...], sizes: Mapping[str, int], most_rows: float, most: int) -> int:
    """As many slots for the largest tile as fit, from 2 to `most`."""
    largest = max((stream.unit_rows * sizes[stream.name] for stream in streams), default=1)
    return max(2, min(most, int(most_rows) // largest))

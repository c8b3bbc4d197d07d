"""All weights pass through one ring of equal slots in the order of their use.

As soon as a tile has been used, its slot is refilled with the tile `depth` places further,
across phases and layers, so that the stream from HBM never waits for a phase to end. Caches
are fetched at the start of their layer. Source: the ring of the published Muse Spark kernel.
"""

from schedc.schedule.plan import Plan, Problem, Ring
from schedc.schedule.tiles import earliest_issue, kv_tile, slot_rows, tiles_for

DEEPEST = 8
"""Published: a ring deeper than 8 slots of 2 MiB gains nothing."""

SHARE = 0.65
"""How much of VMEM an automatic ring may take."""


def ring(problem: Problem, *, depth: int = 0, slot_mib: float = 2.0) -> Plan:
    """`depth` slots of at least `slot_mib` MiB (at least one unit of every stream); 0: up to 8, as VMEM allows."""
    rows = slot_rows(slot_mib)
    sizes = tiles_for(problem, rows)
    if depth == 0:
        largest = max(stream.unit_rows * sizes[stream.name] for stream in problem.matrices())
        depth = max(2, min(DEEPEST, int(SHARE * problem.capacity_rows) // largest))
    return Plan(
        rings=(
            Ring("weights", tuple(stream.name for stream in problem.matrices()), slots=depth, ahead=depth),
            Ring("small", tuple(stream.name for stream in problem.vectors()), slots=2, ahead=2),
        ),
        tile_units=sizes,
        kv_tokens=kv_tile(problem),
        issue=earliest_issue(problem),
    )

"""All weights pass through one ring of equal slots in the order of their use.

As soon as a tile has been used, its slot is refilled with the tile `depth` places further,
across phases and layers, so that the stream from HBM never waits for a phase to end. Caches
are fetched at the start of their layer. Source: the ring of the published Muse Spark kernel.
"""

from schedc.ir.program import ROW_BYTES
from schedc.schedule.plan import Plan, Problem, Ring
from schedc.schedule.tiles import earliest_issue, kv_tile, tiles_for


def ring(problem: Problem, *, depth: int = 8, slot_mib: float = 2.0) -> Plan:
    """`depth` slots of at least `slot_mib` MiB (at least one unit of every stream)."""
    rows = int(slot_mib * 2**20) // ROW_BYTES
    return Plan(
        rings=(
            Ring("weights", tuple(stream.name for stream in problem.matrices()), slots=depth, ahead=depth),
            Ring("small", tuple(stream.name for stream in problem.vectors()), slots=2, ahead=2),
        ),
        tile_units=tiles_for(problem, rows),
        kv_tokens=kv_tile(problem),
        issue=earliest_issue(problem),
    )

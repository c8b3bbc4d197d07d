"""Every transfer starts right before the wait for it: nothing overlaps. The baseline that others are measured by."""

from schedc.schedule.plan import Plan, Problem, Ring
from schedc.schedule.tiles import chosen_rings, chosen_tiles, kv_tile, slot_rows, tiles_for


def just_in_time(problem: Problem, *, slot_mib: float = 4.0) -> Plan:
    rows = slot_rows(slot_mib)
    return Plan(
        rings=(
            Ring("weights", tuple(stream.name for stream in problem.matrices()), slots=1, ahead=0),
            Ring("small", tuple(stream.name for stream in problem.vectors()), slots=1, ahead=0),
            *chosen_rings(problem, slots=1, ahead=0),
        ),
        tile_units=tiles_for(problem, rows) | chosen_tiles(problem, rows),
        kv_tokens=kv_tile(problem),
    )

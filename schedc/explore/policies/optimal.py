"""The yardstick: for every size of tiles the shortest period that a constraint solver finds, then the simulation.

OR-tools CP-SAT over the period of the main loop (schedc/explore/exact.py): for small models without chosen experts. The
order of the phases, the slots of the rings and the issue points are the solver's; the tiles are those of the policies.
Needs the package ortools.
"""

from __future__ import annotations

from schedc.schedule.plan import Plan, Problem


def optimal(problem: Problem, *, seconds: float = 60.0, seed: int = 0) -> Plan:
    """`seconds` in all; every grain of the policies has its share of them."""
    from schedc.explore.setting import prepared, setting_of
    from schedc.explore.starts import starts
    from schedc.explore.yardstick import optimum

    ready = prepared(setting_of(problem))
    begin = list({str(sorted(plan.tile_units.items())): plan for plan in starts(problem).values()}.values())
    found = [optimum(ready, plan, seconds / len(begin), seed) for plan in begin]
    best = min((one for one in found if one is not None), key=lambda one: one.step_ns, default=None)
    if best is None:
        raise ValueError(f"no schedule was found in {seconds:g} seconds; give more: --set seconds={2 * seconds:g}")
    return best.plan

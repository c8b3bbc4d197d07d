"""What each decision of a plan is worth: the plan without it, everything else as it is.

A decision is removed by putting in its place what the plan of a policy that does not make it has. Where the rest then
cannot be built as it is (an order without the deferral that it needs), both are said to fall together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from schedc.explore.search.improve import shrunk
from schedc.explore.search.neighbours import alike, resized
from schedc.explore.setting import Prepared, rows_needed
from schedc.schedule.plan import Plan, Ring
from schedc.schedule.registry import DEFAULT_POLICY, run_policy


@dataclass(frozen=True)
class Ablation:
    """The step without a decision; `worth_us` is what the decision saves. `reason`: why there is no such plan."""

    decision: str
    step_us: float | None
    worth_us: float | None
    reason: str = ""


def ablations(ready: Prepared, plan: Plan) -> list[Ablation]:
    """The most valuable first."""
    whole = ready.step_ns(plan)
    found = []
    for decision, without in _without(ready, plan):
        if without == plan:
            continue
        without, also = _built(ready, without)
        step = ready.step_ns(without)
        name = f"{decision}{also}"
        if step == inf:
            faults = ready.faults(without)
            found.append(Ablation(name, None, None, faults[0] if faults else "does not fit, or waits for ever"))
        else:
            found.append(Ablation(name, round(step / 1e3, 3), round((step - whole) / 1e3, 3)))
    return sorted(found, key=lambda ablation: -(ablation.worth_us if ablation.worth_us is not None else -inf))


def _without(ready: Prepared, plan: Plan) -> Iterator[tuple[str, Plan]]:
    usual = run_policy(DEFAULT_POLICY, ready.problem, {})
    yield "order of the phases", replace(plan, order={})
    yield "deferred refills", replace(plan, deferred={})
    yield "issue points", replace(plan, issue=usual.issue)
    yield "where rings begin", replace(plan, rings=tuple(replace(ring, begin=None) for ring in plan.rings))
    for site in plan.collectives:
        rest = {name: algorithm for name, algorithm in plan.collectives.items() if name != site}
        yield f"collective at {site}: {plan.collectives[site]}", replace(plan, collectives=rest)
    for site in plan.wires:
        rest_wires = {name: wire for name, wire in plan.wires.items() if name != site}
        yield f"wire at {site}: {plan.wires[site]}", replace(plan, wires=rest_wires)
    yield (
        f"sums sent by {plan.sums}" if plan.sums == "tiles" else "sums sent whole",
        replace(plan, sums="whole" if plan.sums == "tiles" else "tiles"),
    )
    yield f"cache tiles of {plan.kv_tokens} tokens", replace(plan, kv_tokens=usual.kv_tokens)
    yield "order of the chosen members", replace(plan, orders={}, at_once={})
    for ring in plan.rings:
        if ring.slots > 2:
            two = replace(ring, slots=2, ahead=min(ring.ahead, 2))
            yield f"{ring.slots} slots of ring {ring.name} (2)", _with(plan, two)
        if ring.ahead:
            yield f"{ring.ahead} ahead in ring {ring.name} (0)", _with(plan, replace(ring, ahead=0))
    yield "tiles of all streams", resized(ready.problem, plan, usual.tile_units)
    for group in alike(ready.problem.matrices() + ready.problem.chosen_matrices()):
        changed = {stream.name: usual.tile_units[stream.name] for stream in group}
        yield (
            f"tiles of {group[0].name}" + (f" and {len(group) - 1} alike" if group[1:] else ""),
            resized(ready.problem, plan, changed),
        )


def _with(plan: Plan, changed: Ring) -> Plan:
    rings = tuple(changed if ring.name == changed.name else ring for ring in plan.rings)
    return replace(plan, rings=rings)


def _built(ready: Prepared, plan: Plan) -> tuple[Plan, str]:
    """The plan, with what cannot stay without the decision taken away too, and what that is."""
    also = ""
    less = (
        ("deferred refills", replace(plan, deferred={})),
        ("deferred refills and issue points", replace(plan, deferred={}, issue={})),
        ("deferred refills, issue points and order", replace(plan, deferred={}, issue={}, order={})),
    )
    for what, changed in less:
        if not ready.faults(plan):
            break
        plan, also = changed, f", with {what}"
    if ready.faults(plan):
        return plan, also
    over = rows_needed(ready.program(plan)) - ready.problem.capacity_rows
    if over > 0:
        plan, also = shrunk(ready, plan, over), f"{also}, with fewer slots"
    return plan, also

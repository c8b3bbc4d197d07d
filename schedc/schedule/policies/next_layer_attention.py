"""The next layer's attention projections arrive while this layer's experts are computed.

The mixers' matrices have a ring of their own, which holds those of a whole layer if VMEM does. It is refilled behind
the routed experts, as soon as the sums of their outputs are on their way to the other devices: the next layer's weights
arrive while these are waited for, and the slots of experts and of attention may lie at the same addresses. In a layer
without experts it is refilled as the feed-forward begins. Source: the published Kimi K3 kernel, which starts every
prefetch of the next layer there.
"""

from collections.abc import Iterator
from dataclasses import replace

from schedc.schedule.defer import deferred, first_that_fits, refilling
from schedc.schedule.plan import Plan, Problem, Ring, SegmentInfo
from schedc.schedule.policies.ring import ring

FEW = (4, 6, 8, 12, 16)
"""Slots that are tried where VMEM holds less than an eighth of a layer's mixer."""


def next_layer_attention(
    problem: Problem,
    *,
    slot_mib: float = 2.0,
    depth: int = 4,
    expert_slots: int = 0,
    expert_mib: float = 4.0,
) -> Plan:
    """`depth` slots for the matrices that are no mixer's, and at most `expert_slots` for experts (0: up to 4)."""
    base = ring(problem, depth=depth, slot_mib=slot_mib, expert_slots=expert_slots, expert_mib=expert_mib)
    mixers = tuple(stream.name for stream in problem.matrices() if stream.half == "mixer")
    if not mixers:
        return base
    return first_that_fits(problem, _plans(problem, base, mixers, depth))


def _plans(problem: Problem, base: Plan, mixers: tuple[str, ...], depth: int) -> Iterator[Plan]:
    """From a ring for all mixer tiles of a layer down to two slots, then with the other ring as small."""
    weights, *others = base.rings
    rest = tuple(name for name in weights.streams if name not in mixers)
    most = max(_tiles(problem, base, segment, mixers) for segment in problem.segments)
    shares = (most * share // 8 for share in range(1, 9))
    for slots in sorted({max(2, min(most, slots)) for slots in (*shares, *FEW)}, reverse=True):
        rings = (Ring("attention", mixers, slots, slots), Ring("weights", rest, depth, depth), *others)
        yield _put_off(problem, replace(base, rings=rings), mixers)
    rings = (Ring("attention", mixers, 2, 2), Ring("weights", rest, 2, 2), *others)
    yield _put_off(problem, replace(base, rings=rings), mixers)


def _tiles(problem: Problem, plan: Plan, segment: SegmentInfo, mixers: tuple[str, ...]) -> int:
    """Of the mixer of one layer of a segment, at most."""
    units, most = {stream.name: stream.units for stream in problem.streams}, 0
    for run in _runs(segment, mixers):
        most = max(most, sum(-(-units[name] // plan.tile_units[name]) for name in run.values()))
    return most


def _runs(segment: SegmentInfo, mixers: tuple[str, ...]) -> list[dict[str, str]]:
    """Phase → matrix, of the mixers of a segment one after the other: other matrices come between them."""
    runs: list[dict[str, str]] = [{}]
    for phase in segment.phases:
        if phase.stream in mixers and phase.stream is not None:
            runs[-1][phase.name] = phase.stream
        elif phase.stream is not None and runs[-1]:
            runs.append({})
    return [run for run in runs if run]


def _put_off(problem: Problem, plan: Plan, mixers: tuple[str, ...]) -> Plan:
    for segment in problem.segments:
        runs = _runs(segment, mixers)
        firsts = [segment.order.index(next(iter(run))) for run in runs]
        for run, first, end in zip(runs, firsts, [*firsts[1:], len(segment.order)], strict=False):
            later = _behind(problem, segment, segment.order[first:end], run)
            refills = [phase for phase in refilling(problem, segment, plan) if phase in run]
            plan = plan if later is None else deferred(problem, plan, refills, later)
    return plan


def _behind(problem: Problem, segment: SegmentInfo, layer: tuple[str, ...], run: dict[str, str]) -> str | None:
    """The phase of a layer at which its mixer's slots are refilled."""
    chosen = [selection.name for selection in problem.selections if selection.name in layer]
    if chosen:
        behind = layer[layer.index(chosen[0]) + 1 :]
        phases = problem.depends[segment.name].nodes
        return next((phase for phase in behind if not phases[phase]["sends"]), None)
    streaming = {phase.name for phase in segment.phases if phase.stream is not None and phase.name not in run}
    return next((phase for phase in layer if phase in streaming), None)

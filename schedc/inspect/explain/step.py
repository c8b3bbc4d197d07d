"""Why a schedule is as long as it is: bounds, what keeps the HBM idle, what the core waits for, its critical path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schedc.cost.report import CostReport, predict
from schedc.inspect.flow import Flow
from schedc.inspect.reasons import reason
from schedc.inspect.subject import Subject
from schedc.ir.program import RemoteStart, Start
from schedc.ir.uses import transfer_name

BOUNDS = {
    "hbm": "every byte of HBM once at the fitted rate",
    "compute": "all computations one after the other",
    "latency": "the chain of starts and waits of this order, if bandwidth and instructions were free",
    "exchanges": "the exchanges between devices that depend on each other",
    "dependence": "the longest chain of what depends on each other",
    "one_core": "what depends on each other, computed by one core",
}
CAUSES = {
    "latency": "transfers are on their way and none has arrived",
    "address": "the next one's address is not known yet, such as a router's choice",
    "data": "what the next one moves is not there yet",
    "slots": "what the next one overwrites is still needed",
    "late": "nothing holds the next one but its place in the program",
    "end": "nothing more is to be moved",
}


@dataclass(frozen=True)
class Waited:
    """A transfer that the core waits for: µs in all, `waits` of its `times` executions a step, and why those are not
    there earlier."""

    transfer: str
    phase: str
    stall_us: float
    waits: int
    times: int
    reason: str


@dataclass(frozen=True)
class StepAnswer:
    cost: CostReport
    waited: tuple[Waited, ...]

    @property
    def answer(self) -> list[str]:
        """In sentences."""
        return list(_sentences(self.cost, self.waited))

    def to_dict(self) -> dict[str, Any]:
        cost = self.cost
        return {
            "step_us": cost.step_us,
            "priced_by": cost.priced_by,
            "binding": cost.binding,
            "bounds": {name: vars(bound) for name, bound in cost.bounds.items()},
            "stall_us": cost.stall_us,
            "hbm_idle_us": cost.hbm_idle_us,
            "idle_causes": dict(cost.idle_causes),
            "waited": [vars(one) for one in self.waited],
            "critical_path": None if cost.critical_path is None else vars(cost.critical_path),
            "answer": self.answer,
        }


def explain_step(subject: Subject, most: int = 6) -> StepAnswer:
    """By the compiler's cycles if it has checked the folder; the `most` transfers that are waited for longest."""
    cost = predict(subject.program, subject.target, machine=subject.priced)
    return StepAnswer(cost, waits(subject.flow)[:most])


def waits(flow: Flow) -> tuple[Waited, ...]:
    """The longest first."""
    by_operation: dict[int, list[int]] = {}
    for index, moved in enumerate(flow.moved):
        by_operation.setdefault(flow.executed[moved.at].op, []).append(index)
    found = []
    for number, indices in by_operation.items():
        op = flow.numbered.ops[number].op
        assert isinstance(op, (Start, RemoteStart))
        every = [flow.moved[index] for index in indices]
        waited = [one for one in every if one.stall_ns > 0.0]
        if not waited:
            continue
        stall = round(sum(one.stall_ns for one in waited) / 1e3, 3)
        phases = dict.fromkeys(flow.executed[one.wait].phase for one in waited if one.wait is not None)
        found.append(Waited(transfer_name(op), ", ".join(phases), stall, len(waited), len(every), reason(flow, waited)))
    return tuple(sorted(found, key=lambda one: -one.stall_us))


def _sentences(cost: CostReport, waited: tuple[Waited, ...]) -> Iterator[str]:
    yield f"the step takes {cost.step_us:,.1f} µs, by {cost.priced_by}"
    bound = cost.bounds[cost.binding]
    over = cost.step_us - bound.time_us
    yield (
        f"it cannot be shorter than {bound.time_us:,.1f} µs: {BOUNDS.get(cost.binding, cost.binding)} "
        f"({cost.binding}); {over:,.1f} µs are above that"
    )
    yield f"of the step the core waits {cost.stall_us:,.1f} µs, and the HBM is idle {cost.hbm_idle_us:,.1f} µs"
    for cause, time in sorted(cost.idle_causes.items(), key=lambda item: -item[1]):
        if time >= 0.01 * cost.step_us:
            yield f"HBM idle {time:,.1f} µs: {CAUSES.get(cause, cause)} ({cause})"
    for one in waited[:3]:
        often = "" if one.waits == one.times else f" ({one.waits:,} of {one.times:,} times)"
        yield f"the core waits {one.stall_us:,.1f} µs for {one.transfer} {_in(one.phase)}{often}: {one.reason}"
    path = cost.critical_path
    if path is not None:
        causes = sorted(path.causes.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{cause} {time:,.1f} µs" for cause, time in causes if time >= 0.02 * cost.step_us)
        yield f"on the critical path: {shares}"
    yield from _advice(cost)
    for note in cost.notes:
        yield f"not known: {note}"


def _in(phases: str) -> str:
    return f"in {phases}" if phases else "between phases"


ADVICE = {
    "computation": "the core's own work: other forms of products (--form), more devices, fewer rows",
    "issue": "starts, waits and guards: fewer and larger transfers",
    "HBM latency": "transfers that are started right before they are awaited: start them earlier, or more ahead",
    "HBM transfer": "bytes that nothing hides: more devices, or weights in a smaller format",
    "HBM shared": "transfers that share the HBM with others that are needed later: fewer on their way at once",
    "link latency": "exchanges one after the other: hide them behind other work, or make them fewer (--collective)",
    "link transfer": "bytes between devices: bf16 on the wire (--wire), or another collective",
    "link queue": "messages that wait for a link: another collective, or exchanges at other times",
    "late peer": "devices that are later than this one",
}
"""What would shorten a cause on the critical path."""


def _advice(cost: CostReport) -> Iterator[str]:
    """Of the two causes that have most of the critical path: only what is on it shortens the step."""
    if cost.critical_path is None:
        return
    causes = sorted(cost.critical_path.causes.items(), key=lambda item: -item[1])
    for cause, time in causes[:2]:
        share = time / cost.step_us if cost.step_us else 0.0
        if share >= 0.1 and cause in ADVICE:
            yield f"{share:.0%} of the critical path is {cause}: {ADVICE[cause]}"

"""All decisions of one compilation, in the order in which they are taken."""

from __future__ import annotations

from dataclasses import replace

from schedc.compiler.decisions import allocation, collectives, placement, plan, products
from schedc.compiler.decisions.decision import Alternative, Decision
from schedc.compiler.pipeline import Request
from schedc.compiler.pricing import schedule
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.errors import SchedcError
from schedc.ir.program import Program
from schedc.schedule.build import Schedule


def decisions_of(request: Request, made: Schedule, program: Program) -> tuple[Decision, ...]:
    """`program` has its addresses. Nothing is simulated: it takes no time, and the same input gives the same log."""
    return (
        *placement.decisions(request),
        *products.decisions(request, program),
        *collectives.decisions(request),
        *plan.decisions(request, made),
        *allocation.decisions(program),
    )


def with_predictions(request: Request, program: Program, log: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """With the predicted step of the policy and of every other: a schedule and a simulation each."""
    machine = Machine.of(request.target)
    chosen = simulate(program, machine)
    return tuple(
        replace(
            one,
            why=f"{one.why}; all steps are priced by {chosen.priced_by}",
            cost=round(chosen.step_ns / 1e3, 3),
            alternatives=tuple(_predicted(request, other.name, machine) for other in one.alternatives),
        )
        if one.kind == "policy"
        else one
        for one in log
    )


def _predicted(request: Request, policy: str, machine: Machine) -> Alternative:
    """With its default settings."""
    try:
        made = schedule(request.spec, request.shape, request.target, policy, {})
        return Alternative(policy, round(simulate(made.program, machine).step_ns / 1e3, 3), "with its default settings")
    except SchedcError as error:
        return Alternative(policy, None, str(error).splitlines()[0])

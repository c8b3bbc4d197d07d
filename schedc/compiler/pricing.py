"""The schedule of a model by a policy that may ask what things take: the simulation answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf

from schedc.cost.machine import Machine
from schedc.cost.simulate import Stuck, simulate
from schedc.ir.program import Program
from schedc.lower.graph import StepShape
from schedc.schedule.build import Price, Pricing, Schedule
from schedc.schedule.build import schedule as unpriced
from schedc.schedule.registry import DEFAULT_POLICY
from schedc.spec.model import ModelSpec
from schedc.target.target import Target


def schedule(
    spec: ModelSpec,
    shape: StepShape,
    target: Target,
    policy: str = DEFAULT_POLICY,
    settings: Mapping[str, int | float] | None = None,
) -> Schedule:
    """Raises SpecError for what cannot be lowered, UserError for an unusable policy or plan."""
    return unpriced(spec, shape, target, policy, settings, pricing_on(target))


def pricing_on(target: Target) -> Pricing:
    return partial(price, machine=Machine.of(target))


def price(program: Program, machine: Machine) -> Price:
    """Of one simulated step."""
    try:
        timeline = simulate(program, machine)
    except Stuck:
        return Price(inf, {}, {})
    return Price(
        timeline.step_ns,
        {phase.name: phase.cycles / machine.clock_ghz for phase in timeline.phases},
        {phase.name: phase.stall_ns for phase in timeline.phases},
    )

"""What a schedule is sought for, and what is made once for all candidates of it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from math import inf

from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import Stuck, inputs_of, simulate
from schedc.cost.timeline import Timeline
from schedc.errors import SchedcError
from schedc.explore.fast.model import Model, model_of
from schedc.ir.allocate import pool_problems
from schedc.ir.allocate.share import first_packing
from schedc.ir.program import Program
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
from schedc.schedule.build import problem_of, program_of
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.plan_faults import check_plan
from schedc.spec.model import ModelSpec
from schedc.target.target import Target

_MODELS_KEPT = 8


@dataclass(frozen=True)
class Setting:
    """A model on a target at the size of a step; `machine` prices it under `load`."""

    spec: ModelSpec
    shape: StepShape
    target: Target
    machine: Machine
    load: Load = DEFAULT_LOAD


def setting_of(problem: Problem) -> Setting:
    """Of a problem, at the target's own prices. Raises ValueError for a problem that is not one of a model."""
    if problem.lowering is None or problem.target is None:
        raise ValueError("this problem does not say which model it is of, so that nothing can be simulated")
    lowering = problem.lowering
    return Setting(lowering.spec, lowering.shape, problem.target, Machine.of(problem.target))


class Prepared:
    """A setting, lowered."""

    def __init__(self, setting: Setting) -> None:
        from schedc.compiler.pricing import pricing_on

        self.setting = setting
        self.lowering = StepLowering(setting.spec, setting.shape)
        self.problem: Problem = problem_of(self.lowering, setting.target, pricing_on(setting.target))
        self._models: dict[bytes, Model] = {}

    def faults(self, plan: Plan) -> list[str]:
        """What keeps a plan from being built."""
        return check_plan(self.problem, plan)

    def program(self, plan: Plan) -> Program:
        """Without addresses. Raises UserError for what cannot be built."""
        return program_of(self.lowering, plan, self.setting.target)

    def model(self, plan: Plan) -> Model:
        """At the grain of the plan, the order open."""
        mappings = (plan.tile_units, plan.orders, plan.collectives, plan.wires)
        key = pickle.dumps(
            (*(sorted(mapping.items()) for mapping in mappings), plan.kv_tokens, plan.kv_slots, plan.sums)
        )
        if key not in self._models:
            while len(self._models) >= _MODELS_KEPT:
                del self._models[next(iter(self._models))]
            lowering = self.lowering.at_sites(plan.collectives, plan.wires)
            setting = self.setting
            self._models[key] = model_of(lowering.graph(plan.grain), setting.target, setting.machine, load=setting.load)
        return self._models[key]

    def timeline(self, plan: Plan) -> Timeline:
        """By the full simulation. Raises Stuck."""
        program = self.program(plan)
        return simulate(program, self.setting.machine, inputs_of(program, None, self.setting.load))

    def step_ns(self, plan: Plan) -> float:
        """By the full simulation; inf for what cannot be built, does not fit, or waits for ever."""
        try:
            if self.faults(plan) or rows_needed(self.program(plan)) > self.problem.capacity_rows:
                return inf
            return self.timeline(plan).step_ns
        except (SchedcError, Stuck):
            return inf


def rows_needed(program: Program) -> int:
    """Rows of VMEM that the first packing takes: the same on every machine, and no less than the final one."""
    return sum(first_packing(problem).rows for problem in pool_problems(program).values())


_PREPARED: dict[bytes, Prepared] = {}


def prepared(setting: Setting) -> Prepared:
    """Made once a process."""
    key = pickle.dumps(setting)
    if key not in _PREPARED:
        _PREPARED[key] = Prepared(setting)
    return _PREPARED[key]

"""Compile a model: schedule, allocate, prove, emit. No jax, no TPU compiler: those are `check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.backends.pallas.memory import added_semaphores, pool_bytes, smem_bytes
from schedc.compiler.fit import does_not_fit
from schedc.compiler.passes import Watch
from schedc.compiler.placement import require_hbm
from schedc.compiler.pricing import schedule
from schedc.compiler.refusals import prove
from schedc.cost.machine import Machine
from schedc.cost.report import CostReport, predict
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.ir.allocate import DoesNotFit, allocate
from schedc.ir.program import Program
from schedc.ir.verify import Limits, Verdict
from schedc.lower.graph import StepShape
from schedc.schedule.build import Schedule, capacity_rows
from schedc.schedule.registry import DEFAULT_POLICY
from schedc.spec.model import ModelSpec
from schedc.target.target import Target


@dataclass(frozen=True)
class Request:
    """What to compile."""

    spec: ModelSpec
    target: Target
    shape: StepShape
    policy: str = DEFAULT_POLICY
    settings: Mapping[str, int | float] | None = None


@dataclass(frozen=True)
class Compiled:
    """A scheduled, allocated, proven program and its kernel."""

    request: Request
    schedule: Schedule
    program: Program
    verdict: Verdict
    kernel: Kernel
    cost: CostReport


def limits_of(target: Target) -> Limits:
    """What a device of the target offers, and how the compiler counts it."""
    capability = target.capability
    return Limits(
        vmem_bytes=capability.vmem_usable_bytes,
        smem_bytes=capability.smem_usable_bytes,
        semaphores=capability.semaphores,
        smem_granule=smem_bytes((1,)),
        pool_bytes=pool_bytes,
        added_semaphores=partial(added_semaphores, per_mixed_input=capability.semaphores_per_mixed_input),
    )


def with_addresses(program: Program, target: Target) -> Program:
    """The program as it can be emitted: every buffer has its address. Raises DoesNotFit."""
    allocated = allocate(program, capacity_rows(target))
    facts = dict(program.attributes) | {"vmem_limit_bytes": target.capability.vmem_usable_bytes}
    return replace(allocated, attributes=tuple(facts.items()))


def build(request: Request, watch: Watch | None = None) -> tuple[Schedule, Program]:
    """The schedule and its program with addresses. Raises CheckFailed when it does not fit, with what would."""
    watch = watch or Watch()
    spec, shape, target = request.spec, request.shape, request.target
    policy, settings = request.policy, request.settings
    with watch.timed("schedule"):
        made = schedule(spec, shape, target, policy, settings)
    require_hbm(spec, shape, target, made, lambda model, step: schedule(model, step, target, policy, settings))
    watch.after("schedule", made.program, limits_of(target))
    try:
        with watch.timed("allocate"):
            program = with_addresses(made.program, target)
    except DoesNotFit as error:
        raise does_not_fit(error, spec, shape, target, policy, settings) from None
    watch.after("allocate", program, limits_of(target))
    return made, program


def compile_model(
    request: Request, watch: Watch | None = None, machine: Machine | None = None, load: Load = DEFAULT_LOAD
) -> Compiled:
    """The prediction is for `machine`, that of the target if none is given, under `load`.

    Raises SpecError or UserError for bad input, CheckFailed for a schedule that does not fit or is not proven.
    """
    watch = watch or Watch()
    made, program = build(request, watch)
    with watch.timed("verify"):
        verdict = prove(program, limits_of(request.target))
    watch.after("verify", program)
    with watch.timed("emit"):
        kernel = emit(program)
    watch.after("emit", program)
    with watch.timed("predict"):
        cost = predict(program, request.target, machine=machine, load=load)
    watch.after("predict", program)
    return Compiled(request, made, program, verdict, kernel, cost)

"""Compile a model: schedule, allocate, prove, emit. No jax, no TPU compiler: those are `check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.fit import does_not_fit
from schedc.cost.report import CostReport, predict
from schedc.errors import CheckFailed
from schedc.ir.allocate import DoesNotFit, allocate
from schedc.ir.program import Program
from schedc.ir.verify import Limits, Verdict, verify
from schedc.lower.graph import StepShape
from schedc.schedule.build import Schedule, capacity_rows, schedule
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
    capability = target.capability
    return Limits(
        vmem_bytes=capability.vmem_usable_bytes,
        smem_bytes=capability.smem_usable_bytes,
        semaphores=capability.semaphores,
        scratch_bytes=capability.vmem_internal_bytes,
    )


def build(request: Request) -> tuple[Schedule, Program]:
    """The schedule and its program with addresses. Raises CheckFailed when it does not fit, with what would."""
    made = schedule(request.spec, request.shape, request.target, request.policy, request.settings)
    try:
        program = allocate(made.program, capacity_rows(request.target))
    except DoesNotFit as error:
        raise does_not_fit(
            error, request.spec, request.shape, request.target, request.policy, request.settings
        ) from None
    limit = ("vmem_limit_bytes", request.target.capability.vmem_usable_bytes)
    return made, replace(program, attributes=(*program.attributes, limit))


def compile_model(request: Request) -> Compiled:
    """Raises SpecError or UserError for bad input, CheckFailed for a schedule that does not fit or is not proven."""
    made, program = build(request)
    verdict = verify(program, limits_of(request.target))
    if not verdict.proven:
        raise CheckFailed(f"the proof refuses the schedule:\n{verdict}")
    return Compiled(request, made, program, verdict, emit(program), predict(program, request.target))

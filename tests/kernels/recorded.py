"""Kernels that copy out what their phases leave, run for one step, with a fault in one phase if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from schedc.compiler.dump import Compared, compared
from schedc.compiler.pipeline import Request, build
from schedc.compiler.recording import Recorded, phases_of, recording
from schedc.compiler.shrink import Shrunk
from schedc.compiler.trial import Outcome
from schedc.ir.allocate import allocate
from schedc.ir.program import Attribute, Compute, Op, Program
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from schedc.weights.layout import Layout
from tests.kernels.built import Built, Mode, built_of, trial
from tests.kernels.faults import rewritten

Fault = Callable[[Program], Program]


def otherwise(phase: str, kind: str, **changed: Attribute) -> Fault:
    """The operation `kind` of a phase with other attributes."""

    def change(op: Op) -> Op:
        if not isinstance(op, Compute) or op.kind != kind:
            return op
        assert changed.keys() <= dict(op.attributes).keys()
        return replace(op, attributes=tuple({**dict(op.attributes), **changed}.items()))

    return lambda program: rewritten(program, phase, change)


def recorded_schedule(spec: ModelSpec, shape: StepShape, target: str = "tpu7x") -> tuple[Shrunk, tuple[Recorded, ...]]:
    """With the copies of all phases."""
    where = parse_target(target, shape.devices)
    made, _ = build(Request(spec, where, shape, "ring"))
    small = Shrunk(spec, shape, made, ())
    copying, records = recording(small, where, {phase.name for _, phase in phases_of(made.graph)})
    return replace(small, schedule=copying), records


def addressed(program: Program, fault: Fault | None) -> Program:
    return allocate(program if fault is None else fault(program), capacity_rows(parse_target("tpu7x")))


def recorded_kernel(
    spec: ModelSpec, shape: StepShape, fault: Fault | None = None
) -> tuple[Built, tuple[Recorded, ...]]:
    small, records = recorded_schedule(spec, shape)
    return built_of(small.schedule, addressed(small.schedule.program, fault)), records


def step_of(
    spec: ModelSpec,
    shape: StepShape,
    positions: tuple[int, ...],
    fault: Fault | None = None,
    mode: Mode = "eager",
    active: tuple[bool, ...] | None = None,
    layouts: Callable[[tuple[Layout, ...]], tuple[Layout, ...]] | None = None,
) -> tuple[list[Compared], Outcome]:
    """What one step compares. `layouts`: how the weights lie instead."""
    built, records = recorded_kernel(spec, shape, fault)
    if layouts is not None:
        built = replace(built, schedule=replace(built.schedule, layouts=layouts(built.schedule.layouts)))
    made = trial(built, spec, shape, mode, records=records)
    outcome = made.step(positions, active)
    return list(compared(outcome, spec, records)), outcome

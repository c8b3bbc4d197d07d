"""Kernels of several devices, interpreted in a process that has as many."""

from __future__ import annotations

from schedc.compiler.interpret import Run, interpret
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import small_tiles


def run_on(
    spec: ModelSpec, devices: int, mode: str, rows: int = 2, seconds: float = 400, target: str = "tpu7x:2x2x1"
) -> Run:
    """A few steps of the kernel beside the reference, which knows of no devices. The program is proven first."""
    shape = StepShape(rows, 40, logits=True, devices=devices)
    request = Request(spec, parse_target(target, devices), shape, small_tiles("ring"))
    made, program = build(request)
    verdict = verify(program, limits_of(request.target))
    assert verdict.proven, str(verdict)
    return interpret(Shrunk(spec, shape, made, ()), program, mode, seconds)

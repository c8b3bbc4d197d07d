"""What is looked at: a program with what it was made from, of a folder or compiled on the fly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from schedc.compiler.output import PROFILE, Output
from schedc.compiler.pipeline import Request, build
from schedc.cost.machine import Machine
from schedc.cost.profile import Profile, read_profile
from schedc.inspect.flow import Flow, flow_of
from schedc.ir.program import Program
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from schedc.target.target import Target, parse_target
from schedc.weights.layout import Layout


@dataclass(frozen=True, eq=False)
class Subject:
    """`folder` is None for a model that was compiled on the fly."""

    program: Program
    spec: ModelSpec
    shape: StepShape
    target: Target
    layouts: tuple[Layout, ...]
    policy: str
    settings: Mapping[str, int | float]
    folder: Path | None = None

    @property
    def request(self) -> Request:
        return Request(self.spec, self.target, self.shape, self.policy, self.settings)

    @cached_property
    def profile(self) -> Profile | None:
        """The TPU compiler's cycles of its operations, of a folder that it has checked."""
        path = None if self.folder is None else self.folder / PROFILE
        return read_profile(str(path)) if path is not None and path.is_file() else None

    @cached_property
    def machine(self) -> Machine:
        """As `schedc compile` predicts: by the table of operations."""
        return Machine.of(self.target)

    @cached_property
    def priced(self) -> Machine:
        """Charged with the compiler's own cycles, where it has given any."""
        return self.machine if self.profile is None else replace(self.machine, pricing=self.profile)

    @cached_property
    def flow(self) -> Flow:
        """A step by `priced`."""
        return flow_of(self.program, self.priced)


def of_folder(output: Output) -> Subject:
    manifest = output.manifest
    return Subject(
        output.program(),
        output.spec,
        output.shape,
        parse_target(manifest["target"], output.shape.devices),
        output.layouts,
        manifest["policy"],
        manifest["settings"],
        output.folder,
    )


def of_request(request: Request) -> Subject:
    """Scheduled and with addresses; not proven. Raises CheckFailed for what does not fit."""
    made, program = build(request)
    return Subject(
        program, request.spec, request.shape, request.target, made.layouts, request.policy, request.settings or {}
    )

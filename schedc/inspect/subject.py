"""What is looked at: a program, written by hand or made from a model; of a model also what it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from schedc.compiler.output import PROFILE, Output
from schedc.compiler.passes import Watch
from schedc.compiler.pipeline import Request, build
from schedc.compiler.written import Source, check_source
from schedc.cost.executions import trips_about
from schedc.cost.machine import Machine
from schedc.cost.prices import table_price
from schedc.cost.profile import Profile, read_profile
from schedc.errors import UserError
from schedc.inspect.flow import Flow, flow_of
from schedc.ir.program import Program, walk
from schedc.ir.text_print import print_op
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from schedc.target.target import Target
from schedc.weights.layout import Layout

MOST_TRIPS = 1_000_000
"""Of the loops of a program that was written by hand: every execution is simulated, and noted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """`source` is the file of a program that was written by hand, `folder` what `schedc compile` has written."""

    program: Program
    target: Target
    source: Source | None = None
    folder: Path | None = None
    given: Profile | None = None
    """Cycles that a plan was found under, in place of a folder's."""

    @cached_property
    def profile(self) -> Profile | None:
        """The TPU compiler's cycles of its operations, of a folder that it has checked or a plan that has them."""
        path = None if self.folder is None else self.folder / PROFILE
        return read_profile(str(path)) if path is not None and path.is_file() else self.given

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
        return flow_of(self.program, self.priced, lines=self.lines)

    @property
    def lines(self) -> tuple[int, ...] | None:
        """Of the operations in the file that was written by hand; None: those of the program's text form."""
        return None if self.source is None else self.source.lines


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelSubject(Subject):
    """`folder` is None for a model that was compiled on the fly."""

    spec: ModelSpec
    shape: StepShape
    layouts: tuple[Layout, ...]
    policy: str
    settings: Mapping[str, int | float]

    @property
    def request(self) -> Request:
        return Request(self.spec, self.target, self.shape, self.policy, self.settings)


def of_folder(output: Output) -> ModelSubject:
    manifest = output.manifest
    return ModelSubject(
        program=output.program(),
        target=output.target,
        folder=output.folder,
        spec=output.spec,
        shape=output.shape,
        layouts=output.layouts,
        policy=manifest["policy"],
        settings=manifest["settings"],
    )


def of_request(request: Request) -> ModelSubject:
    """Scheduled and with addresses; not proven. Raises CheckFailed for what does not fit."""
    made, program = build(request)
    return ModelSubject(
        program=program,
        target=request.target,
        spec=request.spec,
        shape=request.shape,
        layouts=made.layouts,
        policy=request.policy,
        settings=request.settings or {},
    )


def of_source(source: Source, target: Target) -> Subject:
    """With addresses, and proven: what can hang or race has no one timeline. Raises NotProven as `schedc check` does,
    UserError for a computation whose cycles depend on an attribute that it does not have."""
    program = check_source(source, target, Watch()).program
    if (trips := trips_about(program)) > MOST_TRIPS:
        raise UserError(
            f"{source.name}: its loops have about {trips:,} trips in a step; a step of up to {MOST_TRIPS:,} can be "
            "looked at: give its loops fewer (`schedc check` proves it as it is)"
        )
    subject = Subject(program=program, target=target, source=source)
    for number, op in enumerate(walk(program.body)):
        try:
            table_price(op, subject.machine.table, program.devices)
        except (KeyError, TypeError, ValueError) as fault:
            line, column = source.places.operations[number]
            why = f"without the attribute {fault}" if isinstance(fault, KeyError) else f"by its attributes: {fault}"
            where = f"{source.name}:{line}:{column}"
            raise UserError(f"{where}: its cycles cannot be told {why}: {print_op(op)}") from None
    return subject

"""What a subcommand of `schedc inspect` looks at: a compiled folder, a model compiled on the fly, or a program."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedc.cli.console import Stages
from schedc.cli.options import ScheduleOptions, compiled_folder
from schedc.cli.predict_options import PredictOptions
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.output import Output
    from schedc.cost.machine import Machine
    from schedc.inspect.subject import Subject


def refuse_window(start: float, end: float | None, step_us: float) -> None:
    """Of --from and --to, in µs. Raises UserError for what is no part of the step."""
    last = step_us if end is None else end
    if not 0.0 <= start < step_us or not start < last < math.inf:
        raise UserError(
            f"--from {start:g} --to {last:g}: must be a part of the step, from 0 to {step_us:,.1f} µs, and --from less "
            "than --to"
        )


def refuse_other_rows(folder: "Output", rows: int | None) -> None:
    compiled = folder.manifest["rows"]
    if rows is not None and rows != compiled:
        raise UserError(f"{folder.folder}: has been compiled for rows {compiled}; --rows cannot change that")


def is_program(text: str) -> bool:
    """Whether it names a program in the text form, as `schedc check` takes it."""
    return text == "-" or (text.endswith(".ir") and not Path(text).is_dir())


def written_subject(file: str, options: ScheduleOptions, rows: int | None) -> "Subject":
    """Of a program that was written by hand, on the target that is given or that it names. Raises UserError for options
    that say how a model is scheduled, NotProven as `schedc check` does."""
    from schedc.compiler.written import read_source, target_of
    from schedc.inspect.subject import of_source

    refused = [name for name in options.given() if name != "--target"] + (["--rows"] if rows is not None else [])
    if refused:
        raise UserError(f"{file}: is a program; {', '.join(refused)} cannot be given for it, only --target")
    with Stages().stage("prove"):
        source = read_source(file)
        return of_source(source, target_of(source, options.target))


def program_of(model: str, options: ScheduleOptions, rows: int | None) -> tuple[str, dict[str, Any]]:
    """The program's text and the manifest."""
    from schedc.compiler.manifest import manifest
    from schedc.compiler.output import PROGRAM
    from schedc.compiler.pipeline import compile_model
    from schedc.ir.text_print import print_program
    from schedc.spec.load import load_spec

    if is_program(model):
        return print_program(written_subject(model, options, rows).program), {}
    folder = compiled_folder(model, options)
    if folder is not None:
        refuse_other_rows(folder, rows)
        return folder.read(PROGRAM), dict(folder.manifest)
    with Stages().stage("schedule and prove"):
        compiled = compile_model(options.request(load_spec(model), rows))
    return print_program(compiled.program), manifest(compiled)


def machine_for(subjects: "Sequence[Subject]", assumed: PredictOptions) -> "list[Machine]":
    """Of each: with the cycles that are asked for, else those of the folders' profiles if all have one."""
    from dataclasses import replace

    machines = [assumed.machine(subject.target) for subject in subjects]
    if assumed.profile is not None or any(subject.profile is None for subject in subjects):
        return machines
    return [replace(machine, pricing=one.profile) for machine, one in zip(machines, subjects, strict=True)]


def subject_of(model: str, options: ScheduleOptions, rows: int | None) -> "Subject":
    """A folder's program, a model's with addresses (not proven, so that it is there in a moment), or a written one."""
    from dataclasses import replace

    from schedc.cli.planned import with_assumed
    from schedc.cost.profile import read_profile
    from schedc.inspect.subject import of_folder, of_request
    from schedc.spec.load import load_spec

    if is_program(model):
        return written_subject(model, options, rows)
    folder = compiled_folder(model, options)
    if folder is not None:
        refuse_other_rows(folder, rows)
        return of_folder(folder)
    with Stages().stage("schedule"):
        subject = of_request(options.request(load_spec(model), rows))
    profile = with_assumed(PredictOptions(), options.plan).profile
    return subject if profile is None else replace(subject, given=read_profile(profile))

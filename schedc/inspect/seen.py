"""A program simulated and mapped: what traces, pages and maps are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass

from schedc.compiler.output import KERNEL, REPORT, read_output_file
from schedc.compiler.pipeline import Request, limits_of
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.errors import UserError
from schedc.inspect.history import History, history
from schedc.inspect.sources import Sources, sources_of, sources_of_written
from schedc.inspect.subject import Subject
from schedc.inspect.vmem_map import VmemMap, vmem_map
from schedc.ir.allocate import DoesNotFit, allocate
from schedc.ir.text_print import print_program
from schedc.schedule.build import capacity_rows, schedule

_ROOM = 8
"""In this many times the VMEM of a device, what does not fit it is laid out to be looked at."""


@dataclass(frozen=True)
class Seen:
    history: History
    sources: Sources
    vmem: VmemMap


def seen(subject: Subject, machine: Machine | None = None, load: Load = DEFAULT_LOAD) -> Seen:
    """On `machine`, else as `schedc compile` predicts first. Of a folder also with the kernel that lies there, and with
    what its report says of the TPU compiler."""
    kernel, compiler = None, None
    if subject.folder is not None:
        kernel = _read(subject, KERNEL)
        report = _read(subject, REPORT)
        compiler = _compiler_bytes(subject, report) if report is not None else None
    if subject.source is not None:
        program, sources = subject.program, sources_of_written(subject.program, subject.source)
    else:
        program, sources = sources_of(print_program(subject.program), kernel)
    happened = history(program, machine or subject.machine, load=load)
    limit = limits_of(subject.target).vmem_bytes
    return Seen(happened, sources, vmem_map(happened, limit, compiler))


def seen_too_large(request: Request, refusal: DoesNotFit) -> Seen:
    """Of a schedule that does not fit: laid out as if there were more VMEM, with the clash."""
    made = schedule(request.spec, request.shape, request.target, request.policy, request.settings)
    allocated = allocate(made.program, _ROOM * capacity_rows(request.target))
    program, sources = sources_of(print_program(allocated))
    happened = history(program, Machine.of(request.target))
    return Seen(happened, sources, vmem_map(happened, limits_of(request.target).vmem_bytes, None, refusal))


def refused(request: Request) -> DoesNotFit | None:
    """Why the schedule does not fit VMEM, None if it does."""
    made = schedule(request.spec, request.shape, request.target, request.policy, request.settings)
    try:
        allocate(made.program, capacity_rows(request.target))
    except DoesNotFit as error:
        return error
    return None


def _read(subject: Subject, name: str) -> str | None:
    assert subject.folder is not None
    path = subject.folder / name
    return read_output_file(path) if path.is_file() else None


def _compiler_bytes(subject: Subject, report: str) -> dict[str, int] | None:
    """What the TPU compiler takes of VMEM beside the pools, by kind; None if it was not asked."""
    try:
        compiler = json.loads(report).get("compiler")
        if compiler is None:
            return None
        return {kind: int(size) for kind, size in compiler["vmem_bytes"].items() if kind != "scratch"}
    except (json.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        raise UserError(f"{subject.folder}/{REPORT}: is not a report of schedc; compile again") from None

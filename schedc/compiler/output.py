"""The folder a compilation leaves: written whole or not at all, read back by what packs, runs or shows it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schedc.compiler.decisions.decision import Decision, to_markdown
from schedc.compiler.decisions.log import decisions_of
from schedc.compiler.manifest import INTERFACE, manifest
from schedc.compiler.pipeline import Compiled
from schedc.cost.report import CostReport
from schedc.errors import CheckFailed, TargetError, UserError
from schedc.ir.errors import IrSyntaxError
from schedc.ir.program import ROW_BYTES, Program
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_program
from schedc.lower.graph import StepShape, shape_from_dict
from schedc.spec.model import ModelSpec
from schedc.target.load import chip_from_dict
from schedc.target.target import Target, parse_target, target_of_chip
from schedc.validation import validate
from schedc.weights.layout import Layout, from_dict

KERNEL, MANIFEST, PROGRAM, REPORT, EXPORT = "kernel.py", "manifest.json", "program.ir", "report.json", "kernel.export"
PROFILE = "profile.json"
DECISIONS, DECISIONS_TEXT = "decisions.json", "decisions.md"
FILES = (KERNEL, MANIFEST, PROGRAM, REPORT, EXPORT, PROFILE, DECISIONS, DECISIONS_TEXT)
_IGNORED = "__pycache__"
_NEEDED = ("spec", "shape", "weights", "target", "policy", "settings", "rows")
"""Of a manifest: what those that read a folder take for granted."""


@dataclass(frozen=True)
class Output:
    """A folder that was compiled earlier."""

    folder: Path
    manifest: Mapping[str, Any]
    spec: ModelSpec
    shape: StepShape
    layouts: tuple[Layout, ...]
    """As devices have them in common; `on_device` gives those of one."""

    def read(self, name: str) -> str:
        """The text of one of its files. Raises UserError if it is not there."""
        return read_output_file(self.folder / name)

    def program(self) -> Program:
        """Raises UserError, with the place, if the file is no program."""
        try:
            return parse_program(self.read(PROGRAM))
        except IrSyntaxError as error:
            raise UserError(f"{self.folder / PROGRAM}: is not a program: {error}; compile again") from None

    @property
    def target(self) -> Target:
        """What it was compiled for. Raises UserError for one that is not known here."""
        name, chip, devices = str(self.manifest["target"]), self.manifest.get("chip"), self.shape.devices
        try:
            if chip is None:
                return parse_target(name, devices)
            return target_of_chip(chip_from_dict(chip, "its chip cannot be used"), name, devices)
        except TargetError as error:
            raise UserError(f"{self.folder / MANIFEST}: {error}; compile again") from None

    def decisions(self) -> tuple[Decision, ...]:
        """As they were taken when it was compiled. Raises UserError if the log is not there or is none."""
        try:
            return tuple(Decision.from_dict(one) for one in json.loads(self.read(DECISIONS)))
        except (json.JSONDecodeError, KeyError, TypeError):
            raise UserError(f"{self.folder / DECISIONS}: is not a log of decisions; compile again") from None


@contextmanager
def new_output(folder: Path) -> Iterator[Path]:
    """A draft folder beside `folder`, which takes its place when the block ends.

    Raises UserError before the block if `folder` cannot be written, or is there and holds something else than an
    earlier output. If a check fails in the block, the draft becomes `<folder>.failed`, to be looked at; after any
    other error nothing is left.
    """
    place = folder.resolve()
    _refuse_files(folder)
    _refuse_other_content(folder)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield draft
        _move(draft, place)
    except CheckFailed as failure:
        failed = folder.with_name(f"{place.name}.failed")
        if not any(draft.iterdir()) or _foreign(failed):
            raise
        _move(draft, failed.resolve())
        message, *problems = (text.replace(str(draft), str(failed)) for text in (str(failure), *failure.problems))
        details = failure.details | {"folder": str(failed)}
        raise CheckFailed(f"{message}\nthe files are kept in {failed}", problems=problems, details=details) from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_program(compiled: Compiled, draft: Path) -> None:
    """Everything but the report, which waits for the checks."""
    (draft / KERNEL).write_text(compiled.kernel.source, encoding="utf-8")
    (draft / PROGRAM).write_text(print_program(compiled.program), encoding="utf-8")
    _write_json(draft / MANIFEST, manifest(compiled))
    log = decisions_of(compiled.request, compiled.schedule, compiled.program)
    _write_json(draft / DECISIONS, [one.to_dict() for one in log])
    (draft / DECISIONS_TEXT).write_text(to_markdown(f"Decisions of {compiled.program.name}", log), encoding="utf-8")


def write_report(
    compiled: Compiled, checked: Mapping[str, Any] | None, draft: Path, profiled: CostReport | None = None
) -> None:
    _write_json(draft / REPORT, report(compiled, checked, profiled))


def report(compiled: Compiled, checked: Mapping[str, Any] | None, profiled: CostReport | None = None) -> dict[str, Any]:
    """The proof, the use of VMEM, the prediction, and what the TPU compiler says (None: not asked).

    `profiled` is the prediction that is charged with the compiler's cycles.
    """
    capability = compiled.request.target.capability
    pools = {pool.name: pool.rows * ROW_BYTES for pool in compiled.program.pools}
    return {
        "model": compiled.request.spec.name,
        "target": compiled.request.target.describe(),
        "proof": {"proven": compiled.verdict.proven, **asdict(compiled.verdict.statistics)},
        "vmem": {
            "peak_bytes": sum(pools.values()),
            "limit_bytes": capability.vmem_usable_bytes,
            "pools": pools,
        },
        "cost": compiled.cost.to_dict(),
        "cost_by_compiler": None if profiled is None else profiled.to_dict(),
        "compiler": None if checked is None else dict(checked),
    }


def is_output(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def read_output(folder: Path) -> Output:
    """Raises UserError for a folder that is none, is damaged, or was written for another interface."""
    if not is_output(folder):
        raise UserError(f"{folder}: is not a folder written by `schedc compile`: it has no {MANIFEST}")
    where = folder / MANIFEST
    try:
        data = json.loads(read_output_file(where))
        if data["interface"] != INTERFACE:
            found = data["interface"]
            raise UserError(f"{where}: has interface {found}, this schedc has {INTERFACE}; compile again")
        missing = [key for key in _NEEDED if key not in data]
        if missing:
            raise UserError(f"{where}: has no {', '.join(missing)}; compile again")
        spec_data, layouts, shape = data["spec"], data["weights"]["layouts"], shape_from_dict(data["shape"])
    except (json.JSONDecodeError, KeyError, TypeError):
        raise UserError(f"{where}: is not a manifest of schedc; compile again") from None
    spec, faults = validate(ModelSpec, spec_data)
    if spec is None:
        raise UserError("\n".join([f"{where}: its spec cannot be used; compile again", *(f"  {f}" for f in faults)]))
    return Output(folder, data, spec, shape, tuple(from_dict(layout) for layout in layouts))


def _refuse_files(folder: Path) -> None:
    """A file, or below a file."""
    for path in (folder, *folder.parents):
        if os.path.lexists(path) and not path.is_dir():
            raise UserError(f"{folder}: cannot be written: {path} is not a folder")


def _refuse_other_content(folder: Path) -> None:
    foreign = _foreign(folder)
    if foreign:
        raise UserError(
            f"{folder}: is not overwritten, because it holds what `schedc compile` does not write: "
            f"{', '.join(foreign[:3])}{', …' if len(foreign) > 3 else ''}; give another folder with -o"
        )


def _foreign(folder: Path) -> list[str]:
    """Entries that a compilation did not write."""
    try:
        entries = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror or error}") from None
    return [name for name in entries if name not in (*FILES, _IGNORED)]


def _move(draft: Path, place: Path) -> None:
    """Put `draft` where an earlier folder may be, which is kept until the new one is there."""
    before = place.with_name(f"{draft.name}.before")
    if place.exists():
        place.rename(before)
    try:
        draft.rename(place)
    except OSError:
        if before.exists():
            before.rename(place)
        raise
    shutil.rmtree(before, ignore_errors=True)


def _write_json(path: Path, data: Mapping[str, Any] | list[dict[str, Any]]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_output_file(path: Path) -> str:
    """Raises UserError if it is not there, or is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not text: byte {error.start} is not UTF-8; compile again") from None


def _unwritable(folder: Path, error: OSError) -> UserError:
    return UserError(f"{folder}: cannot be written: {error.strerror or error}")

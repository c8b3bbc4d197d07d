"""A program written by hand: read from its file, given addresses, proven, with every fault at its place in the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from schedc.compiler.output import MANIFEST, PROGRAM, read_output
from schedc.compiler.passes import Watch, comparable
from schedc.compiler.pipeline import limits_of
from schedc.compiler.refusals import NotProven, prove, refusal_dict
from schedc.errors import TargetError, UserError
from schedc.ir.allocate import DoesNotFit, allocate, pool_problems
from schedc.ir.allocate.problem import Problem
from schedc.ir.allocate.validate import validate
from schedc.ir.errors import IrSyntaxError
from schedc.ir.program import Program
from schedc.ir.text_parse import Places, parse_located
from schedc.ir.verify import Refusal, Statistics, Verdict
from schedc.ir.verify.declarations import check_declarations
from schedc.ir.verify.names import check_names
from schedc.ir.verify.verdict import Place
from schedc.schedule.build import capacity_rows
from schedc.target.target import Target, parse_target

DEFAULT_TARGET = "tpu7x:2x2x1"
_MOST_SHOWN = 200
"""Characters of a line beside a fault."""


class ProgramSyntaxError(UserError):
    """A file is no program: where, and what was expected there."""

    kind = "syntax"


@dataclass(frozen=True)
class Source:
    """A program and the text it was read from."""

    name: str
    """The file as the user calls it."""
    text: str
    program: Program
    places: Places

    @property
    def lines(self) -> tuple[int, ...]:
        """Of the operations, in the order of `program.walk`."""
        return tuple(line for line, _ in self.places.operations)


@dataclass(frozen=True)
class Proven:
    """A program with addresses that the proof has accepted, unless it was not asked (`verdict` None)."""

    source: Source
    target: Target
    program: Program
    verdict: Verdict | None


def read_source(file: str) -> Source:
    """The program in `file`, or on stdin for `-`. Raises UserError, and ProgramSyntaxError at the place."""
    name = "<stdin>" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        text = data.decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: is not text: byte {error.start} is not UTF-8") from None
    try:
        return Source(name, text, *parse_located(text))
    except IrSyntaxError as error:
        place = error.line, error.column
        message = f"{name}:{error.line}:{error.column}: expected {error.expected}, found {error.found}"
        details = {"line": error.line, "column": error.column, "expected": error.expected, "found": error.found}
        raise ProgramSyntaxError(
            "\n".join([message, *excerpt(text, place)]), problems=[message], details=details
        ) from None


def target_of(source: Source, given: str | None) -> Target:
    """The given target, else that of the folder that `schedc compile` wrote the program into, whose chip may be of a
    file of the user's own, else the one that the program's attributes name, else the default.

    Raises TargetError, and UserError for a folder whose manifest cannot be read.
    """
    folder = Path(source.name).parent
    if given is None and Path(source.name).name == PROGRAM and (folder / MANIFEST).is_file():
        return read_output(folder).target
    named = dict(source.program.attributes).get("target")
    text = given or (named if isinstance(named, str) else DEFAULT_TARGET)
    try:
        return parse_target(text, source.program.devices)
    except TargetError as error:
        where = "" if given is not None or text is DEFAULT_TARGET else f"{source.name}: attribute target: "
        hint = "; or give a target with --target" if where else ""
        raise TargetError(f"{where}{error}{hint}") from None


def check_source(source: Source, target: Target, watch: Watch, proof: bool = True) -> Proven:
    """Addresses for the buffers that have none, and the proof. Raises NotProven with the places in the file."""
    limits = limits_of(target)
    try:
        watch.after("parse", source.program, limits, source.lines)
        bare = comparable(source.program)
        if check_declarations(bare, limits) or check_names(bare, source.lines):
            prove(bare, limits, source.lines)
        with watch.timed("allocate"):
            program = _addressed(source.program, target)
        facts = dict(program.attributes) | {"vmem_limit_bytes": target.capability.vmem_usable_bytes}
        program = replace(program, attributes=tuple(facts.items()))
        watch.after("allocate", program, limits, source.lines)
        if not proof:
            return Proven(source, target, program, None)
        with watch.timed("verify"):
            verdict = prove(program, limits, source.lines)
    except NotProven as error:
        raise _located(source, error) from None
    watch.after("verify", program)
    return Proven(source, target, program, verdict)


def _addressed(program: Program, target: Target) -> Program:
    """Given addresses, and rows of pools, are kept. A program that has all addresses is left as it is."""
    placed = all(buffer.address is not None for buffer in program.buffers)
    if placed and all(pool.rows for pool in program.pools):
        return program
    clashes = list(_clashes(program))
    if clashes:
        raise NotProven("", Verdict(tuple(clashes), Statistics()))
    try:
        allocated = allocate(program, capacity_rows(target))
    except DoesNotFit as error:
        clash = error.clashes[0].buffer if error.clashes else ""
        repair = "make these buffers smaller, give them fewer slots, or let fewer be live at once"
        raise NotProven("", Verdict((Refusal("capacity", str(error), repair, storage=clash),), Statistics())) from None
    declared = {pool.name: pool.rows for pool in program.pools}
    small = [pool for pool in allocated.pools if 0 < declared[pool.name] < pool.rows]
    if small:
        refusals = tuple(
            Refusal(
                "capacity",
                f"pool {pool.name} has {declared[pool.name]} rows, its buffers need {pool.rows}",
                f"give it rows={pool.rows}, or leave its rows out",
                storage=pool.name,
            )
            for pool in small
        )
        raise NotProven("", Verdict(refusals, Statistics()))
    pools = tuple(replace(pool, rows=max(pool.rows, declared[pool.name])) for pool in allocated.pools)
    return replace(allocated, pools=pools)


def _clashes(program: Program) -> Iterator[Refusal]:
    """Given addresses that no packing can keep."""
    for pool, problem in pool_problems(program).items():
        given = {item.name: item.fixed for item in problem.items if item.fixed is not None}
        fixed = Problem(tuple(item for item in problem.items if item.fixed is not None))
        for violation in validate(fixed, given, fixed.height(given)):
            at = f"buffer {violation.item} at row {given[violation.item]} of pool {pool}"
            other = f": {violation.other}" if violation.other else ""
            yield Refusal(
                "address",
                f"{at} {violation.cause.value}{other}",
                f"leave out the address of {violation.item}, or give all buffers one",
                storage=violation.item,
            )


def _located(source: Source, error: NotProven) -> NotProven:
    """What the user sees: every refusal at its place in the file, with the line and the repair."""
    refusals = error.verdict.refusals
    after = f" after pass {error.after}" if error.after else ""
    lines = [f"{source.name} is refused{after}: {len(refusals)} {'reason' if len(refusals) == 1 else 'reasons'}"]
    dicts = []
    for refusal in refusals:
        place, other = _position(source, refusal.place), _position(source, refusal.other)
        where = place or source.places.declarations.get(refusal.storage)
        at = f":{where[0]}:{where[1]}" if where else ""
        lines += ["", f"{source.name}{at}: {refusal.rule}: {refusal.what}"]
        if where:
            lines += excerpt(source.text, where)
        if other and other != place:
            lines += excerpt(source.text, other, "the other operation")
        lines.append(f"  repair: {refusal.repair}")
        found = refusal_dict(refusal, where[1] if where else None, other[1] if other else None)
        dicts.append(found | {"line": where[0] if where else None})
    return NotProven("\n".join(lines), error.verdict, error.after, dicts)


def _position(source: Source, place: Place | None) -> tuple[int, int] | None:
    if place is None:
        return None
    return source.places.operations[place.index] if place.index >= 0 else (place.line, 1)


def excerpt(text: str, place: tuple[int, int], note: str = "") -> list[str]:
    """The line at (line, column), and a caret below the column; tabs stay tabs, so that both are as wide.

    Of a long line what is around the column; what cannot be printed is a mark.
    """
    whole, column = text.split("\n")[place[0] - 1].rstrip("\r"), place[1] - 1
    first = max(0, column - _MOST_SHOWN // 2) if len(whole) > _MOST_SHOWN else 0
    shown = whole[first : first + _MOST_SHOWN]
    line = "".join(c if c == "\t" or c.isprintable() else "\ufffd" for c in shown)
    below = "".join(c if c == "\t" else " " for c in line[: column - first])
    return [f"{place[0]:>6} | {line}", f"{'':>6} | {below}^{f' {note}' if note else ''}"]

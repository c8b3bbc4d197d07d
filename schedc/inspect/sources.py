"""Where every operation of a program stands: in the text of the program and in the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.backends.pallas.errors import EmitError
from schedc.compiler.written import Source
from schedc.ir.program import Program, walk
from schedc.ir.text_parse import parse_located


@dataclass(frozen=True)
class Sources:
    """Lines count from 1; operations are in the order of `program.walk`."""

    ir: str
    ir_lines: tuple[int, ...]
    kernel: str
    """Empty if the kernel that is at hand is not the one that this schedc emits from the program."""
    kernel_lines: tuple[int | None, ...]
    ir_name: str = "program.ir"
    no_kernel: str = "the kernel in this folder is not what this schedc emits"
    """Why `kernel` is empty, if it is."""


def sources_of(text: str, kernel: str | None = None) -> tuple[Program, Sources]:
    """The program of `text` and its sources. `kernel` is the emitted file, if there is one already."""
    program, places = parse_located(text)
    emitted = emit(program)
    lines = tuple(line for line, _ in places.operations)
    if kernel is not None and kernel != emitted.source:
        return program, Sources(text, lines, "", tuple(None for _ in lines))
    return program, Sources(text, lines, emitted.source, _kernel_lines(program, emitted))


def sources_of_written(program: Program, source: Source) -> Sources:
    """Of a program that was written by hand: the lines are those of the user's file."""
    name = Path(source.name).name
    try:
        emitted = emit(program)
    except EmitError as error:
        nothing = tuple(None for _ in source.lines)
        return Sources(source.text, source.lines, "", nothing, name, f"no kernel can be emitted: {error}")
    return Sources(source.text, source.lines, emitted.source, _kernel_lines(program, emitted), name)


def _kernel_lines(program: Program, emitted: Kernel) -> tuple[int | None, ...]:
    at = {id(op): line for line, op in emitted.operations}
    return tuple(at.get(id(op)) for op in walk(program.body))

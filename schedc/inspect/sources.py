"""Where every operation of a program stands: in the text of the program and in the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.backends.pallas.emit.kernel import emit
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

    def ir_text(self, op: int) -> str:
        return self.ir.split("\n")[self.ir_lines[op] - 1].strip()


def sources_of(text: str, kernel: str | None = None) -> tuple[Program, Sources]:
    """The program of `text` and its sources. `kernel` is the emitted file, if there is one already."""
    program, places = parse_located(text)
    emitted = emit(program)
    lines = tuple(line for line, _ in places.operations)
    if kernel is not None and kernel != emitted.source:
        return program, Sources(text, lines, "", tuple(None for _ in lines))
    at = {id(op): line for line, op in emitted.operations}
    return program, Sources(text, lines, emitted.source, tuple(at.get(id(op)) for op in walk(program.body)))

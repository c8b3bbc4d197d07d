"""A mutant, in words."""

from __future__ import annotations

import difflib

from schedc.ir.program import Program
from schedc.ir.text_print import print_program


def difference(program: Program, mutant: Program) -> list[str]:
    """The lines of the text form that differ, each after `-` or `+`, with one line around them."""
    before, after = (print_program(p).splitlines() for p in (program, mutant))
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))
    return ["  ..." if line.startswith("@@") else line for line in lines[2:]]

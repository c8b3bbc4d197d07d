"""The errors of the IR: what a caller of the text form or the allocator must be ready for."""

from __future__ import annotations


class IrError(Exception):
    """Base of every error that `schedc.ir` raises on purpose."""


class IrSyntaxError(IrError):
    """The text is not a program: `line` and `column` (from 1) of the place, and what was `expected` there."""

    def __init__(self, line: int, column: int, expected: str, found: str) -> None:
        self.line, self.column, self.expected, self.found = line, column, expected, found
        super().__init__(f"line {line}, column {column}: expected {expected}, found {found}")

"""Rows that `schedc bench` wrote: of a generated kernel, known by its program's hash."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from schedc.cost.calibration.measurements import Measurement
from schedc.ir.program import Program

FORMAT = "{formats} kernel {digest} position {position}"
_FORMAT = re.compile(r"(?P<formats>.+) kernel (?P<digest>[0-9a-f]{12}) position (?P<position>\d+)")


def digest(program_text: str) -> str:
    """By which a row names its program: of the file program.ir."""
    return sha256(program_text.encode()).hexdigest()[:12]


def read_kernels(folders: Sequence[Path]) -> dict[str, Program]:
    """The programs of compiled folders by their digest. Raises UserError for what is no such folder."""
    from schedc.compiler.output import PROGRAM, read_output
    from schedc.ir.text_parse import parse_program

    texts = [read_output(folder).read(PROGRAM) for folder in folders]
    return {digest(text): parse_program(text) for text in texts}


def kernel_of(row: Measurement) -> tuple[str, int] | None:
    """The digest of the program and the position that a row of `schedc bench` is of; None for other rows."""
    found = _FORMAT.fullmatch(row.weights_format)
    return (found["digest"], int(found["position"])) if found and row.metric == "step" else None

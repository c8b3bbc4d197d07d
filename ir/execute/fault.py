"""What goes wrong in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True)
class Fault:
    kind: str
    """Of timing: wrong-read, wrong-result, unfinished, semaphore-left, peer-not-started.

    Of the program whatever the timing: never-written, deadlock, out-of-range, bad-peer, no-case,
    undeclared, table-written, too-long.
    """
    step: int
    """Index of the operation among those that the device executes."""
    detail: str
    device: int = 0


class IllegalError(Exception):
    """An operation that means nothing, such as a slot that the buffer does not have."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind, self.what = kind, what


def refuse(kind: str, what: str) -> NoReturn:
    raise IllegalError(kind, what)

"""What the core did as slices that can be drawn: messages that are sent one after the other are one."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.inspect.history import History
from schedc.ir.program import RemoteStart, Signal


@dataclass(frozen=True, slots=True)
class Run:
    """Executions `first` to `last` of `History.steps`, of one operation; times in ns."""

    op: int
    first: int
    last: int
    began: float
    ended: float

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def runs_of(history: History) -> tuple[Run, ...]:
    steps, first = history.steps, 0
    found = []
    for index in range(1, len(steps) + 1):
        op = steps[index - 1].op
        sends = isinstance(history.ops[op], (RemoteStart, Signal))
        if index < len(steps) and sends and steps[index].op == op:
            continue
        found.append(Run(op, first, index - 1, steps[first].began, steps[index - 1].ended))
        first = index
    return tuple(found)

"""The independent judge of every packing: compares each pair of items, and uses nothing of the solver's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from schedc.ir.allocate.problem import Problem


class Cause(Enum):
    MISSING = "has no address"
    NEGATIVE = "is below row 0"
    TOO_HIGH = "ends above the capacity"
    MISALIGNED = "is not at a multiple of its alignment"
    MOVED = "is not at its fixed address"
    OVERLAP = "shares rows with another buffer that is live at the same time"


@dataclass(frozen=True)
class Violation:
    cause: Cause
    item: str
    other: str | None = None

    def __str__(self) -> str:
        return f"{self.item} {self.cause.value}" + (f": {self.other}" if self.other is not None else "")


def validate(problem: Problem, addresses: Mapping[str, int], capacity: int) -> list[Violation]:
    """Every violation; an empty list is a valid packing."""
    found = [Violation(Cause.MISSING, item.name) for item in problem.items if item.name not in addresses]
    present = [item for item in problem.items if item.name in addresses]
    for i, item in enumerate(present):
        address = addresses[item.name]
        if address < 0:
            found.append(Violation(Cause.NEGATIVE, item.name))
        if address + item.size > capacity:
            found.append(Violation(Cause.TOO_HIGH, item.name))
        if address % item.align:
            found.append(Violation(Cause.MISALIGNED, item.name))
        if item.fixed is not None and address != item.fixed:
            found.append(Violation(Cause.MOVED, item.name))
        for other in present[i + 1 :]:
            apart = address + item.size <= addresses[other.name] or addresses[other.name] + other.size <= address
            together = False
            for first, end in item.spans:
                for other_first, other_end in other.spans:
                    if first < other_end and other_first < end:
                        together = True
            if together and not apart:
                found.append(Violation(Cause.OVERLAP, item.name, other.name))
    return found

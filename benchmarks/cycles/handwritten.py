"""Cycles of kernels that others wrote by hand, and the phases of ours that do the same work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from schedc.yaml_text import parse_yaml

FILE = Path(__file__).with_name("handwritten.yaml")

ELSE = "all else"


@dataclass(frozen=True)
class Handwritten:
    """`step`: cycles of a step; `parts`: name → (cycles of a step, patterns of the names of our phases)."""

    source: str
    step: int
    parts: Mapping[str, tuple[int, tuple[str, ...]]]

    def compared(self, cycles: Mapping[str, int]) -> list[tuple[str, int, int]]:
        """(part, cycles of ours, of theirs) a step: a phase counts for the first part with a pattern that fits it."""
        ours = dict.fromkeys((*self.parts, ELSE), 0)
        for phase, amount in cycles.items():
            ours[self.part_of(phase)] += amount
        theirs = {name: amount for name, (amount, _) in self.parts.items()}
        theirs[ELSE] = self.step - sum(theirs.values())
        return [(name, ours[name], theirs[name]) for name in ours] + [("step", sum(ours.values()), self.step)]

    def part_of(self, phase: str) -> str:
        for name, (_, patterns) in self.parts.items():
            if any(fnmatchcase(phase, pattern) for pattern in patterns):
                return name
        return ELSE


def handwritten(model: str, path: Path = FILE) -> Handwritten | None:
    """None for a model of which there is no such kernel."""
    entry: Mapping[str, Any] | None = parse_yaml(path.read_text(encoding="utf-8")).get(model)
    if entry is None:
        return None
    parts = {part["name"]: (part["cycles"] * part["layers"], tuple(part["phases"])) for part in entry["parts"]}
    return Handwritten(entry["source"], entry["step"], parts)

"""How the devices of a step talk to each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from schedc.lower.collectives.group import Topology
from schedc.weights.layout import WordDtype


@dataclass(frozen=True)
class Communication:
    """Partial outputs are summed by the algorithm `all_reduce`, in words of `wire`."""

    topology: Topology = field(default_factory=lambda: Topology(1, 1))
    all_reduce: str = "one_shot"
    wire: WordDtype = "f32"

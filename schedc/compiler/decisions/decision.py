"""One decision, and the log of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "devices", "placement", "product", "collective", "policy", "ring", "tile", "kv tile", "issue", "allocation"
]


@dataclass(frozen=True)
class Alternative:
    """`cost` in the decision's unit; None: not known, or it cannot be (`note` says why)."""

    name: str
    cost: float | None
    note: str = ""


@dataclass(frozen=True)
class Decision:
    """What `kind` of thing `about` what is `chosen`, `why`, at which `cost`, and what else there was.

    The alternatives do not include what was chosen.
    """

    kind: Kind
    about: str
    chosen: str
    why: str
    unit: str = ""
    cost: float | None = None
    alternatives: tuple[Alternative, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "alternatives": [vars(other) for other in self.alternatives]}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Decision:
        """What `to_dict` gives. Raises TypeError and KeyError for what is none."""
        others = tuple(Alternative(**other) for other in data["alternatives"])
        return Decision(**{**data, "alternatives": others})


def to_markdown(title: str, decisions: Iterable[Decision]) -> str:
    """A section a kind, a table a decision that had alternatives."""
    lines, kind = [f"# {title}"], ""
    for one in decisions:
        if one.kind != kind:
            kind = one.kind
            lines += ["", f"## {kind}"]
        cost = "" if one.cost is None else f" ({number(one.cost)} {one.unit})"
        lines += ["", f"**{one.about}**: {one.chosen}{cost}. {one.why}."]
        if one.alternatives:
            lines += ["", f"| instead | {one.unit or 'cost'} | |", "|---|---:|---|"]
            lines += [
                f"| {_cell(other.name)} | {'' if other.cost is None else number(other.cost)} | {_cell(other.note)} |"
                for other in one.alternatives
            ]
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """For a person: whole numbers without a point."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

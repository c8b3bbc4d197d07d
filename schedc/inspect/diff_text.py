"""What differs, in words: of the terminal's summary and of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedc.inspect.diff import Figure


def places(phases: Mapping[str, int]) -> str:
    """`qkv ×29, head ×2`"""
    return ", ".join(f"{phase or 'no phase'} ×{times}" for phase, times in phases.items()) or "nowhere"


def sizes(sizes: tuple[int, ...]) -> str:
    return ", ".join(f"{size:,}" for size in sizes) or "none"


def placed(buffer: tuple[int, int, int | None] | None) -> str:
    if buffer is None:
        return "none"
    rows, slots, address = buffer
    return f"{f'{slots} slots of ' if slots > 1 else ''}{rows:,} rows at {address}"


def us(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def figure(one: Figure) -> tuple[str, str, str, str, str]:
    """Name with unit, both values, their difference, and that as a share of the first."""
    digits = 1 if one.unit == "µs" else 0
    share = f"{one.change / one.first:+.1%}" if round(one.first, digits) else ""
    values = (f"{one.first:,.{digits}f}", f"{one.second:,.{digits}f}", f"{one.change:+,.{digits}f}")
    return (f"{one.name} {one.unit}".strip(), *values, share)

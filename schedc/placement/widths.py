"""Columns over devices: of a feed-forward, of the vocabulary."""

from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, evenly, in_copies

PANEL = 128
"""Columns of a panel of words, the least that is divided."""


def dense_split(width: int, devices: int, rules: PlacementRules) -> Split:
    """Columns of gate and up, rows of down."""
    return evenly(width, devices if rules.dense == "columns" else 1, PANEL)


def head_split(vocab: int, devices: int, rules: PlacementRules) -> Split:
    """Which ids a device has the head's columns of."""
    return evenly(vocab, devices if rules.head == "vocab" else 1, PANEL)


def shared_split(width: int, devices: int) -> Split:
    """Columns of a shared expert, whose output joins the sum of the routed ones over all devices."""
    return evenly(width, devices, PANEL)


def entry_split(width: int, devices: int) -> Split:
    """Columns of a projection whose output every device needs whole, and gets from the others: whole panels."""
    return in_copies(width, devices, PANEL)

"""The vocabulary over devices."""

from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, evenly

PANEL = 128
"""Columns of a panel of words, the least that is divided."""


def head_split(vocab: int, devices: int, rules: PlacementRules) -> Split:
    """Which ids a device has the head's columns of."""
    return evenly(vocab, devices if rules.head == "vocab" else 1, PANEL)

"""The kinds of faults, by name."""

from __future__ import annotations

import random
from collections.abc import Callable

from schedc.ir.program import Program

Kind = Callable[[Program, random.Random], Program | None]
"""Puts one fault, drawn at random, into a program; None if the program has nothing for it."""

KINDS: dict[str, Kind] = {}


def kind(fault: Kind) -> Kind:
    name = fault.__name__.replace("_", "-")
    assert name not in KINDS
    KINDS[name] = fault
    return fault

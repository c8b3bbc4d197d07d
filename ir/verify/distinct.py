"""Rows apart because two elements of an array that are read at different places differ: two pages of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedc.ir.verify.linear import Lin, Value, add, scale, sub
from schedc.ir.verify.logic import Facts

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine


def apart(machine: Machine, distance: Lin, before: int, behind: int, facts: Facts) -> bool:
    """Whether `distance` is `before` or more, or `-behind` or less, whichever of two elements is the larger.

    With distance = rest + c·(x - y) and |x - y| >= 1 it is rest + c or more, or rest - c or less.
    """
    places, proves = machine.atoms.places, machine.logic.proves
    steps = dict(distance.terms)
    for x, c in distance.terms:
        for y in steps:
            if c <= 0 or steps[y] != -c or x not in places or y not in places:
                continue
            (family, (i, *_)), (other, (j, *_)) = places[x], places[y]
            if family.rank is not None or family != other or not _differ(machine, i, j, facts):
                continue
            rest = sub(distance, Lin(0, tuple(sorted(((x, c), (y, -c))))))
            if proves(add(rest, c - before), facts) and proves(add(scale(rest, -1), c - behind), facts):
                return True
    return False


def _differ(machine: Machine, i: Value, j: Value, facts: Facts) -> bool:
    gap = sub(i, j)
    return machine.logic.proves(add(gap, -1), facts) or machine.logic.proves(add(scale(gap, -1), -1), facts)

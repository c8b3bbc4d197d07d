"""Why buffers do not fit: a set that cannot be in VMEM together, of which none can be spared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedc.ir.allocate.problem import Item, Problem
from schedc.ir.allocate.share import share

Member = tuple[str, Item]
"""Pool and item."""

_SECONDS = 0.5
"""Of exact search to decide whether the set fits without one of its members, or without some."""


@dataclass(frozen=True)
class ClashSet:
    members: tuple[Member, ...]
    proven: bool
    """The members cannot be packed together."""
    irreducible: bool
    """Without any one of them, the others can."""


def clash_set(problems: Mapping[str, Problem], capacity: int, proven: bool, seconds: float) -> ClashSet:
    """A set of items that cannot be packed together; `proven` says that all items cannot.

    If the peaks alone are too high it comes from these, else by leaving out items as long as a search proves that the
    others do not fit. If nothing is proven, it is what is live at the peaks.
    """
    deadline = time.monotonic() + seconds
    peaks = {pool: problem.live_at(problem.peak()[1]) for pool, problem in problems.items()}
    at_peaks = [(pool, item) for pool, items in peaks.items() for item in items]
    if not proven:
        return ClashSet(tuple(at_peaks), False, False)
    too_high = _rows(at_peaks) > capacity
    members = at_peaks if too_high else [(pool, item) for pool, p in problems.items() for item in p.items]
    if too_high:
        for member in sorted(at_peaks, key=lambda member: member[1].size):
            if _rows(members) - member[1].size > capacity:
                members = _without(members, [member])
    return _reduced(members, capacity, deadline)


def _reduced(members: Sequence[Member], capacity: int, deadline: float) -> ClashSet:
    """Leave out parts of the set, half of it first and single members last, while the rest still does not fit.

    A member that is kept was needed by a larger set, so it is needed by all that come after.
    """
    irreducible = True
    needed: set[str] = set()
    some = max(len(members) // 2, 1)
    while True:
        candidates = sorted(
            (member for member in members if member[1].name not in needed),
            key=lambda member: (member[1].size * member[1].duration, member[1].name),
        )
        for start in range(0, len(candidates), some):
            part = candidates[start : start + some]
            rest = _without(members, part)
            seconds = min(_SECONDS, deadline - time.monotonic())
            kind = share(_problems(rest), capacity, seconds).kind if seconds > 0 else "not-found"
            if kind == "cannot-fit":
                members = rest
            elif some == 1:
                needed.add(part[0][1].name)
                irreducible = irreducible and kind == "fits"
        if some == 1:
            return ClashSet(tuple(members), True, irreducible)
        some //= 2


def _problems(members: Sequence[Member]) -> dict[str, Problem]:
    pools = sorted({pool for pool, _ in members})
    return {pool: Problem(tuple(item for other, item in members if other == pool)) for pool in pools}


def _without(members: Sequence[Member], gone: Sequence[Member]) -> list[Member]:
    names = {item.name for _, item in gone}
    return [member for member in members if member[1].name not in names]


def _rows(members: Sequence[Member]) -> int:
    return sum(item.size for _, item in members)

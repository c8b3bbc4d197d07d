"""Exact packing into a given height, by depth-first search in the manner of minimalloc.

    M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
    Learning", ASPLOS 2023.

Items are placed in order of address, each at the lowest row above the placed items that it meets
(every packing can be pushed down into this form). A branch ends as soon as, in some section of
time, the floor under what is still to place plus its rows exceeds the height. An item is not tried
while another, that it meets, would still fit wholly below it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schedc.ir.allocate.problem import Problem, aligned


@dataclass(frozen=True)
class Answer:
    kind: Literal["fits", "cannot-fit", "not-found"]
    """`not-found`: the time ran out."""
    addresses: dict[str, int]


class _OutOfTimeError(Exception):
    pass


def exact(problem: Problem, height: int, seconds: float) -> Answer:
    """Addresses below `height`, or whether there are none. Fixed addresses are not searched: they end as not-found."""
    if any(item.fixed is not None for item in problem.items):
        return Answer("not-found", {})
    search = _Search(problem, height, time.monotonic() + seconds)
    try:
        found = search.place(0)
    except _OutOfTimeError:
        return Answer("not-found", {})
    return Answer("fits", search.addresses()) if found else Answer("cannot-fit", {})


class _Search:
    def __init__(self, problem: Problem, height: int, deadline: float) -> None:
        self._items = sorted(problem.items, key=lambda item: (-item.size * (item.upper - item.lower), item.name))
        self._height, self._deadline = height, deadline
        times = sorted({t for item in self._items for t in (item.lower, item.upper)})
        at = {t: i for i, t in enumerate(times)}
        self._spans = [slice(at[item.lower], at[item.upper]) for item in self._items]
        self._floor = np.zeros(max(len(times), 1), np.int64)
        self._left = np.zeros_like(self._floor)
        for item, span in zip(self._items, self._spans, strict=True):
            self._left[span] += item.size
        self._meets = [
            [j for j, b in enumerate(self._items) if j != i and a.meets(b)] for i, a in enumerate(self._items)
        ]
        self._address: dict[int, int] = {}

    def addresses(self) -> dict[str, int]:
        return {self._items[i].name: address for i, address in self._address.items()}

    def place(self, lowest: int) -> bool:
        """Place all that are left at `lowest` or above."""
        if len(self._address) == len(self._items):
            return True
        if time.monotonic() > self._deadline:
            raise _OutOfTimeError
        if (self._floor + self._left > self._height).any():
            return False
        rows: dict[int, int] = {}
        for i, item in enumerate(self._items):
            if i not in self._address:
                row = aligned(max(int(self._floor[self._spans[i]].max()), lowest), item.align)
                if row + item.size > self._height:
                    return False
                rows[i] = row
        for i in sorted(rows, key=lambda i: (rows[i], i)):
            if any(j in rows and rows[j] + self._items[j].size <= rows[i] for j in self._meets[i]):
                continue
            item, span, row = self._items[i], self._spans[i], rows[i]
            before = self._floor[span].copy()
            self._floor[span] = row + item.size
            self._left[span] -= item.size
            self._address[i] = row
            if self.place(row):
                return True
            del self._address[i]
            self._left[span] += item.size
            self._floor[span] = before
        return False

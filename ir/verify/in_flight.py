"""The transfers in flight, in the order of their starts, found by the rows that they may read or write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedc.ir.verify.state import Access, Transfer

_GRANULE = 1024
"""Rows of a space whose transfers are listed together."""
_WIDE = 16
"""Granules from which on an access is listed with those that may be anywhere in their space."""

Key = tuple[str, int]


class InFlight(list["Transfer"]):
    """Changed by `append` and `replace` alone."""

    def __init__(self, transfers: Iterable[Transfer] = ()) -> None:
        super().__init__(transfers)
        self.rows = sum([transfer.source.rows for transfer in self])
        self._listed: dict[Key, dict[int, tuple[int, Transfer]]] | None = None
        """Per granule, -1 being anywhere in the space, the transfers by identity with their number in this order."""
        self._next = 0

    def append(self, transfer: Transfer) -> None:
        super().append(transfer)
        self.rows += transfer.source.rows
        if self._listed is not None:
            self._next += 1
            self._list(self._listed, transfer, self._next)

    def replace(self, transfer: Transfer, by: Sequence[Transfer]) -> None:
        """Put others into the place of this very transfer."""
        at = next(i for i, other in enumerate(self) if other is transfer)
        self[at : at + 1] = by
        self.rows += sum([other.source.rows for other in by]) - transfer.source.rows
        if self._listed is None:
            return
        numbers = {self._listed[key].pop(id(transfer))[0] for key in _keys(transfer)}
        if len(by) > 1 or not numbers:
            self._listed = None
        elif by:
            self._list(self._listed, by[0], min(numbers))

    def near(self, access: Access) -> list[Transfer]:
        """At least those that may read or write rows of the access, in the order of their starts."""
        if (listed := self._listed) is None:
            listed = self._listed = {}
            for number, transfer in enumerate(self):
                self._list(listed, transfer, number)
            self._next = len(self)
        low, high = access.low // _GRANULE, (access.high - 1) // _GRANULE
        if high - low > _WIDE:
            return [t for t in self if access.space in (t.source.space, t.target.space)]
        lists = [listed[key] for g in (-1, *range(low, high + 1)) if (key := (access.space, g)) in listed]
        if not lists:
            return []
        found: dict[int, Transfer] = {}
        for entries in lists:
            found.update(entries.values())
        return [found[number] for number in sorted(found)]

    @staticmethod
    def _list(listed: dict[Key, dict[int, tuple[int, Transfer]]], transfer: Transfer, number: int) -> None:
        for key in _keys(transfer):
            listed.setdefault(key, {})[id(transfer)] = number, transfer


def _keys(transfer: Transfer) -> set[Key]:
    """Where the ends on this device are listed."""
    found: set[Key] = set()
    for end in (transfer.source, transfer.target):
        if not end.space:
            continue
        low, high = end.low // _GRANULE, (end.high - 1) // _GRANULE
        if high - low > _WIDE:
            found.add((end.space, -1))
        else:
            found.update([(end.space, g) for g in range(low, high + 1)])
    return found

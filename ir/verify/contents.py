"""Which buffer each row of a space was written for last, and under which guard.

Rows form runs; a run has layers, oldest first. A layer (owner, guard, op) says: if the guard held,
the row was written for that owner by that operation. A read for an owner looks from the newest layer down: its
own layer whose guard follows from the facts settles it, another owner's layer must be excluded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from schedc.ir.verify.logic import MAYBE, Cases, Facts, Logic

_MOST_LAYERS = 48


class Layer(NamedTuple):
    owner: str
    guard: Facts
    op: int
    """Index of the operation that wrote, in the order of `program.walk`."""


Layers = tuple[Layer, ...]


class Fault(NamedTuple):
    row: int
    end: int
    by: Layer | None
    """The layer of another owner that is in the way; None if nothing was written."""
    guarded: Layer | None
    """The owner's own layer whose guard does not follow."""


class Contents:
    """`starts[i]` is the first row of run i, which ends where the next one starts."""

    def __init__(self, starts: list[int] | None = None, layers: list[Layers] | None = None) -> None:
        self.starts: list[int] = starts if starts is not None else [0]
        self.layers: list[Layers] = layers if layers is not None else [()]

    def copy(self) -> Contents:
        return Contents(list(self.starts), list(self.layers))

    def write(self, low: int, high: int, layer: Layer, logic: Logic) -> None:
        """Rows low..high-1 are written for the layer's owner under its guard."""
        first, last = self._cut(low), self._cut(high)
        for i in range(first, last):
            self.layers[i] = _push(self.layers[i], layer, logic)
        self._join(max(first - 1, 0), last)

    def write_somewhere(self, low: int, high: int, layer: Layer, logic: Logic) -> None:
        """Some rows of low..high-1 are written: none of them counts as initialised, all as overwritten."""
        self.write(low, high, layer._replace(guard=(*layer.guard, MAYBE)), logic)

    def fault(self, low: int, high: int, owner: str, facts: Facts, logic: Logic) -> Fault | None:
        """The first run of rows low..high-1 that does not surely hold what was written for `owner`."""
        i = bisect_right(self.starts, low) - 1
        while i < len(self.starts) and self.starts[i] < high:
            found = _read(self.layers[i], owner, facts, logic)
            if found is not None:
                end = self.starts[i + 1] if i + 1 < len(self.starts) else high
                return Fault(max(low, self.starts[i]), min(end, high), *found)
            i += 1
        return None

    def at(self, row: int) -> Layers:
        return self.layers[bisect_right(self.starts, row) - 1]

    def joined(self) -> Contents:
        """The same with runs that agree made one."""
        self._join(0, len(self.starts))
        return self

    def _cut(self, row: int) -> int:
        """Make `row` the start of a run and return the run's index."""
        i = bisect_right(self.starts, row) - 1
        if self.starts[i] == row:
            return i
        self.starts.insert(i + 1, row)
        self.layers.insert(i + 1, self.layers[i])
        return i + 1

    def _join(self, first: int, last: int) -> None:
        for i in range(min(last, len(self.starts) - 1), first, -1):
            if self.layers[i] == self.layers[i - 1]:
                del self.starts[i], self.layers[i]


def _read(
    layers: Layers, owner: str, facts: Facts, logic: Logic, cases: Cases | None = None
) -> tuple[Layer | None, Layer | None] | None:
    cases = cases or Cases()
    found = _read_case(layers, owner, facts, logic)
    if found is None or found[1] is None or not cases.take():
        return found
    # The owner's layers may cover all cases together, such as those of a switch.
    condition = next(c for c in found[1].guard if not logic.implied(c, facts))
    if condition == MAYBE or any(_read(layers, owner, case, logic, cases) for case in logic.split(condition, facts)):
        return found
    return None


def holds_for_last_owner(layers: Layers, facts: Facts, logic: Logic) -> bool:
    """Whether the rows surely hold what the owner of the newest layer wrote."""
    return _read(layers, layers[-1].owner, facts, logic) is None


def compact(layers: Iterable[Layer], logic: Logic) -> Layers:
    """The layers, oldest first, without those that say no more than others."""
    kept: Layers = ()
    for layer in layers:
        kept = _push(kept, layer, logic)
    return kept


def visible(layers: Layers, logic: Logic) -> Layers:
    """The layers, oldest first, without those that a newer one hides, since it was written whenever they were.

    Buffers that take turns in the same rows leave two layers in every iteration otherwise, each under its condition.
    """
    kept: list[Layer] = []
    guards: set[Facts] = set()
    for layer in reversed(layers):
        if layer.guard not in guards:
            kept.append(layer)
            if MAYBE not in layer.guard:
                guards.add(layer.guard)
    return layers if len(kept) == len(layers) else compact(reversed(kept), logic)


def _read_case(layers: Layers, owner: str, facts: Facts, logic: Logic) -> tuple[Layer | None, Layer | None] | None:
    """The layers that keep the owner from what it wrote: another's, and its own that may not have happened."""
    guarded = None
    for layer in reversed(layers):
        if layer.owner == owner:
            if all(logic.implied(condition, facts) for condition in layer.guard):
                return None
            if guarded is None and not logic.excluded(layer.guard, facts):
                guarded = layer
        elif not logic.excluded(layer.guard, facts):
            return layer, guarded
    return None, guarded


def _push(layers: Layers, new: Layer, logic: Logic) -> Layers:
    if not new.guard:
        return (new,)
    for layer in reversed(layers):
        if layer.owner != new.owner:
            break
        if all(condition in new.guard or logic.implied(condition, new.guard) for condition in layer.guard):
            return layers
    kept = tuple(layer for layer in layers if layer.owner != new.owner or not _implies(layer.guard, new.guard, logic))
    if len(kept) >= _MOST_LAYERS:
        # Forgetting that an owner's rows were written is safe; forgetting that they were overwritten is not.
        oldest = next((i for i, layer in enumerate(kept) if layer.owner == new.owner), None)
        kept = kept if oldest is None else kept[:oldest] + kept[oldest + 1 :]
    return (*kept, new)


def _implies(weaker: Facts, guard: Facts, logic: Logic) -> bool:
    """Whether `guard` holds wherever `weaker` does, so that a newer layer under `guard` settles it."""
    return all(logic.implied(condition, weaker) for condition in guard)


def meet(a: Contents, b: Contents) -> Contents:
    """What holds in both: the layers that agree, else a sole owner that both agree on, else nothing."""
    starts = sorted({*a.starts, *b.starts})
    met = Contents(starts, [_meet(a.at(row), b.at(row)) for row in starts])
    met._join(0, len(starts))
    return met


def _meet(a: Layers, b: Layers) -> Layers:
    if a == b:
        return a
    x, y = a[-1:], b[-1:]
    if x and y and x[0].owner == y[0].owner and not x[0].guard and not y[0].guard:
        return x
    return ()

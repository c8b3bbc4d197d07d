"""The state of every sequence passes through VMEM: fetched from HBM, updated, written back.

If the states of all sequences fit, each has its slot: all are fetched early, and written back together. Else they go
through a few slots, sequence by sequence: the next one is fetched as soon as the one before has been written back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, add, as_expr, minimum, mod, mul, sub
from schedc.ir.program import Array, Buffer, Loop, Op, Region, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.graph import Declarations, Prefetch, StepShape
from schedc.lower.parts import CACHE, Place, compute, each_row
from schedc.lower.rows import is_active

MOST_ROWS = 16384
"""Rows of VMEM (8 MiB) that the states of all sequences may take; beyond, two slots, or as many as fit."""

Update = Callable[[Expr, Region, Region | None], tuple[Op, ...]]
"""What happens to a row: its number, where its state is, and where the next one goes (None: in its place)."""


def most_slots(state_rows: int) -> int:
    return max(2, MOST_ROWS // state_rows)


@dataclass(frozen=True)
class StateStream:
    """`state_rows` rows a sequence and layer, `[layer][sequence]` in HBM. `buffer`: its slots, which places may share.

    `unrolled`: whether the sequences stand one after the other in the kernel, where they can.
    """

    state_rows: int
    buffer: str
    shape: StepShape
    place: Place
    unrolled: bool

    @property
    def slots(self) -> int:
        return min(self.shape.rows, most_slots(self.state_rows))

    @property
    def resident(self) -> bool:
        """Whether every sequence has a slot of its own."""
        return self.slots == self.shape.rows

    @property
    def array(self) -> Array:
        rows = len(self.place.layers) * self.shape.rows * self.state_rows
        return Array(self.place.named("state"), rows, "state")

    def declarations(self) -> Declarations:
        named, rows = self.place.named, self.shape.rows
        return Declarations(
            buffers=(Buffer(self.buffer, CACHE, self.state_rows, self.slots),),
            arrays=(self.array,),
            semaphores=(Semaphore(named("state_arrived"), rows), Semaphore(named("state_written"), rows)),
        )

    def begin(self) -> tuple[Op, ...]:
        """Slots of inactive sequences are read before anything has been fetched into them."""
        return tuple(compute("zero", writes={"out": self._slot(Const(slot))}) for slot in range(self.slots))

    def prefetches(self, use: str) -> tuple[Prefetch, ...]:
        """`use`: the phase that updates them."""

        def ops(trip: Expr) -> tuple[Op, ...]:
            first = self.slots if self.resident else self.slots - 1
            return each_row(first, lambda row: (self._if_active(row, self._fetch(trip, row)),))

        return (Prefetch(self.place.named("states"), ops, self.place.named("mixer_norm"), self.place.named(use)),)

    def update(self, trip: Expr, update: Update) -> tuple[Op, ...]:
        """`update` of every sequence, between the arrival of its state and its way back."""
        rows = self.shape.rows
        if self.resident:
            arrived = each_row(rows, lambda row: (self._if_active(row, self._arrived(row)),))
            written = each_row(rows, lambda row: (self._if_active(row, self._write(trip, row)),))
            if self.unrolled:
                return (*arrived, *each_row(rows, lambda row: update(row, self._slot(row), None)), *written)
            row = Counter(self.place.named("sequence"))
            return (*arrived, Loop(row.name, Const(rows), update(row, self._slot(row), None)), *written)
        row = Counter(self.place.named("sequence"))
        before, later = sub(row, 1), add(row, self.slots - 1)
        return (
            Loop(
                row.name,
                Const(rows),
                (
                    When((Compare(">", row, Const(0)),), (self._if_active(before, self._written(before)),)),
                    When((Compare("<", later, Const(rows)),), (self._if_active(later, self._fetch(trip, later)),)),
                    self._if_active(row, self._arrived(row)),
                    *update(row, self._slot(self._slot_of(row)), None),
                    self._if_active(row, self._write(trip, row)),
                ),
            ),
        )

    def end(self) -> tuple[Op, ...]:
        """All states have reached HBM."""
        if self.resident:
            return each_row(self.shape.rows, lambda row: (self._if_active(row, self._written(row)),))
        last = Const(self.shape.rows - 1)
        return (self._if_active(last, self._written(last)),)

    def keeps(self, row: Expr) -> Expr:
        """0 where a sequence has no tokens before this one, or is inactive: whatever its slot holds does not count."""
        return minimum(Element("active", row), Element("position", row))

    def _slot_of(self, row: Expr) -> Expr:
        return row if self.resident else mod(row, self.slots)

    def _slot(self, slot: Expr) -> Region:
        return Region(self.buffer, self.state_rows, slot=slot)

    def _in_hbm(self, trip: Expr, row: Expr) -> Region:
        first = mul(add(mul(trip, self.shape.rows), row), self.state_rows)
        return Region(self.place.named("state"), self.state_rows, first)

    def _fetch(self, trip: Expr, row: Expr) -> Op:
        semaphore = SemaphoreRef(self.place.named("state_arrived"), row)
        return Start(self._in_hbm(trip, row), self._slot(self._slot_of(row)), semaphore)

    def _arrived(self, row: Expr) -> Op:
        return Wait(SemaphoreRef(self.place.named("state_arrived"), row), self.state_rows)

    def _write(self, trip: Expr, row: Expr) -> Op:
        semaphore = SemaphoreRef(self.place.named("state_written"), row)
        return Start(self._slot(self._slot_of(row)), self._in_hbm(trip, row), semaphore)

    def _written(self, row: Expr) -> Op:
        return Wait(SemaphoreRef(self.place.named("state_written"), row), self.state_rows)

    def _if_active(self, row: Expr, op: Op) -> Op:
        return When((is_active(as_expr(row)),), (op,))

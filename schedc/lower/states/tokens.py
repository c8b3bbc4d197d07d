"""The states after every one of consecutive tokens: each is made from the one before, and all are written back.

In HBM they go round a ring, one place more than there are rows: a step begins with the state at `base`, and the state
after row i comes to base + 1 + i. The next step begins with that after the last row which was accepted, wherever it
is: nothing is copied to go back.
"""

from __future__ import annotations

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, add, as_expr, maximum, minimum, mod, mul, sub
from schedc.ir.program import Array, Buffer, Loop, Op, Region, Scalars, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.graph import Declarations, Prefetch
from schedc.lower.parts import CACHE, compute, each_row
from schedc.lower.rows import COUNT
from schedc.lower.states.stream import StateStream, Update, most_slots

BASE = "base"
FIRST = Const(0)


class TokenStates(StateStream):
    """`state_rows` rows a state, `[layer][place in the ring]` in HBM. Row t finds its state in slot t of VMEM and
    leaves the next in slot t + 1, modulo the slots: if not all fit, one is used again when it has been written back.
    """

    @property
    def places(self) -> int:
        return self.shape.kept_states

    @property
    def slots(self) -> int:
        return min(self.places, most_slots(self.state_rows))

    @property
    def resident(self) -> bool:
        return self.slots == self.places

    @property
    def array(self) -> Array:
        return Array(self.place.named("state"), len(self.place.layers) * self.places * self.state_rows, "state")

    def declarations(self) -> Declarations:
        named = self.place.named
        return Declarations(
            buffers=(Buffer(self.buffer, CACHE, self.state_rows, self.slots),),
            arrays=(self.array,),
            scalars=(Scalars(BASE, 1, 0, self.shape.rows, "input"),),
            semaphores=(Semaphore(named("state_arrived"), 1), Semaphore(named("state_written"), 2 * self.shape.rows)),
        )

    def begin(self) -> tuple[Op, ...]:
        """That of `base` is read before anything has been fetched, if no row is active."""
        return (compute("zero", writes={"out": self._slot(FIRST)}),)

    def prefetches(self, use: str) -> tuple[Prefetch, ...]:
        named = self.place.named

        def ops(trip: Expr) -> tuple[Op, ...]:
            start = Start(
                self._at(trip, Element(BASE, FIRST)), self._slot(FIRST), SemaphoreRef(named("state_arrived"), FIRST)
            )
            return (When(self._has(FIRST), (start,)),)

        return (Prefetch(named("states"), ops, named("mixer_norm"), named(use)),)

    def update(self, trip: Expr, update: Update) -> tuple[Op, ...]:
        named, rows, slots = self.place.named, self.shape.rows, self.slots
        wait = Wait(SemaphoreRef(named("state_arrived"), FIRST), self.state_rows)
        arrived = When(self._has(FIRST), (wait,))

        def token(row: Expr) -> tuple[Op, ...]:
            return update(row, *(self._slot(mod(add(row, later), slots)) for later in (0, 1)))

        if self.resident and self.unrolled:
            return (arrived, *each_row(rows, token), *each_row(rows, lambda row: self._write_back(trip, row)))
        row = Counter(named("state_row"))
        again = When((Compare(">=", row, Const(slots)),), self._all_written(sub(row, slots)))
        body = (*(() if self.resident else (again,)), *token(row), *self._write_back(trip, row))
        return (arrived, Loop(row.name, Const(rows), body))

    def end(self) -> tuple[Op, ...]:
        left = min(self.slots, self.shape.rows)
        return each_row(left, lambda row: self._all_written(add(self.shape.rows - left, row)))

    def _all_written(self, row: Expr) -> tuple[Op, ...]:
        return tuple(
            When(conditions, (Wait(semaphore, self.state_rows),)) for conditions, _, semaphore in self._ways(row)
        )

    def keeps(self, row: Expr) -> Expr:
        """0 for the first token of a sequence: there is no state before it."""
        return maximum(minimum(Element(COUNT, FIRST), Element("position", FIRST)), minimum(row, 1))

    def _has(self, row: Expr) -> tuple[Compare, ...]:
        return (Compare(">", Element(COUNT, FIRST), as_expr(row)),)

    def _at(self, trip: Expr, place: Expr) -> Region:
        first = mul(add(mul(trip, self.places), place), self.state_rows)
        return Region(self.place.named("state"), self.state_rows, first)

    def _ways(self, row: Expr) -> list[tuple[tuple[Compare, ...], Expr, SemaphoreRef]]:
        """When the state after a row goes where in the ring: further on, or round to its beginning."""
        further = add(Element(BASE, FIRST), 1, row)
        name, end = self.place.named("state_written"), Const(self.places)
        return [
            ((*self._has(row), Compare("<", further, end)), further, SemaphoreRef(name, row)),
            (
                (*self._has(row), Compare(">=", further, end)),
                sub(further, self.places),
                SemaphoreRef(name, add(row, self.shape.rows)),
            ),
        ]

    def _write_back(self, trip: Expr, row: Expr) -> tuple[Op, ...]:
        source = self._slot(mod(add(row, 1), self.slots))
        return tuple(
            When(conditions, (Start(source, self._at(trip, place), semaphore),))
            for conditions, place, semaphore in self._ways(row)
        )

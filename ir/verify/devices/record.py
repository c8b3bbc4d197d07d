"""The communication of one device: its program executed for control flow and scalars alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from schedc.ir.program import Op, scalars_set, walk
from schedc.ir.verify.context import Context
from schedc.ir.verify.devices.events import Event, Post
from schedc.ir.verify.logic import Facts
from schedc.ir.verify.machine import Machine, elsewhere
from schedc.ir.verify.state import Access, Counters, Element, Transfer


class Recorder(Machine):
    """Raises UndecidedError where the world does not decide whether something is communicated."""

    inducts = False

    def __init__(self, context: Context, rank: int, world: Facts) -> None:
        super().__init__(context, rank, world)
        self.events: list[Event] = []

    def now(self) -> Counters:
        """The same object for the same counters on every device: there are as many as messages."""
        counters = super().now()
        return self.context.counters.setdefault(counters, counters)

    def skips(self, op: Op) -> bool:
        """No operand of a computation and no local transfer decides what is communicated."""
        return not (self.context.communicates(op) or any(scalars_set(inner) for inner in walk((op,))))

    def compute(self, index: int, accesses: Sequence[tuple[str, Access]]) -> None:
        """Only what it sets counts."""

    def start(self, index: int, source: Access, target: Access, element: Element) -> None:
        if element[0] in self.context.shared:
            self._record("post", posts=(Post(self.rank, element, source.rows),))

    def remote_start(
        self, index: int, source: Access, target: Access, peer: int, sent: Element, arrived: Element
    ) -> None:
        now = self.now()
        arrival = Transfer(index, now, elsewhere(target), target, arrived, self.facts, device=self.rank)
        posts = [Post(peer, arrived, source.rows, arrival)]
        if sent[0] in self.context.shared:
            posts.append(Post(self.rank, sent, source.rows))
        self.events.append(Event("post", self.index(), now, tuple(posts)))

    def wait(self, element: Element, rows: int) -> None:
        self.take(element, rows)

    def signal(self, element: Element, amount: int, peer: int | None) -> None:
        if element[0] in self.context.shared:
            self._record("post", posts=(Post(self.rank if peer is None else peer, element, amount),))

    def take(self, element: Element, amount: int) -> None:
        if element[0] in self.context.shared:
            self._record("take", element=element, amount=amount)

    def barrier(self) -> None:
        if self.context.devices > 1:
            self._record("barrier")

    def _record(
        self,
        kind: Literal["post", "take", "barrier"],
        posts: tuple[Post, ...] = (),
        element: Element = ("", 0),
        amount: int = 0,
    ) -> None:
        self.events.append(Event(kind, self.index(), self.now(), posts, element, amount))

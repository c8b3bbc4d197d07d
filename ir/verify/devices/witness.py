"""The machine of a device that is proven in full, which notes the rows that it was proven on, for its twins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from schedc.ir.expr import Counter
from schedc.ir.program import Region
from schedc.ir.verify.context import Context
from schedc.ir.verify.devices.roles import depends_on_rank, leaves_of, regions
from schedc.ir.verify.devices.turns import Turns
from schedc.ir.verify.linear import Value
from schedc.ir.verify.logic import Facts
from schedc.ir.verify.machine import Machine
from schedc.ir.verify.peers import Peers
from schedc.ir.verify.state import Access, Element, Transfer

Counters = Mapping[str, Value]


class Witness(Machine):
    """What it notes may be more than was executed: also what an induction tried that did not go through."""

    def __init__(self, context: Context, rank: int, world: Facts, peers: Peers, turns: Turns) -> None:
        self.fixed: dict[int, Access] = {}
        """By identity, the rows that do not depend on the rank."""
        self.moving: dict[tuple[int, int], dict[tuple[tuple[Value, ...], int], Access]] = defaultdict(dict)
        """By operation and number of its region, where that depends on the rank: the rows, by the counters in it."""
        self._counters_of: dict[int, list[tuple[str, ...] | None]] = {}
        super().__init__(context, rank, world, peers)
        self.turns = turns
        self.state.contents |= turns.spaces()

    def start(self, index: int, source: Access, target: Access, element: Element) -> None:
        self._note(index, (source, target))
        super().start(index, source, target, element)

    def remote_start(
        self, index: int, source: Access, target: Access, peer: int, sent: Element, arrived: Element
    ) -> None:
        self._note(index, (source,))
        super().remote_start(index, source, target, peer, sent, arrived)

    def compute(self, index: int, accesses: Sequence[tuple[str, Access]]) -> None:
        self._note(index, [rows for _, rows in accesses])
        super().compute(index, accesses)
        for access, rows in accesses:
            if access != "write":
                self.turns.read(self.state, rows, self._since_world(self.facts), self.logic)
        for access, rows in accesses:
            if access != "read":
                self.turns.write(self.state, rows, self._since_world(self.facts), self.logic)

    def ends(self, transfer: Transfer, facts: Facts) -> None:
        for rows in (transfer.source, transfer.target):
            self.turns.end(self.state, rows, (*facts, *transfer.guard), self.logic)

    def _launch(self, transfer: Transfer) -> None:
        super()._launch(transfer)
        guard = self._since_world(transfer.guard)
        self.turns.read(self.state, transfer.source, guard, self.logic)
        self.turns.write(self.state, transfer.target, guard, self.logic)

    def _since_world(self, facts: Facts) -> Facts:
        return () if facts == self.world else facts

    def _note(self, index: int, accesses: Sequence[Access]) -> None:
        if (counters_of := self._counters_of.get(index)) is None:
            found = regions(self.source.ops[index])
            counters_of = self._counters_of[index] = [self.counters_of(region) for region in found]
        for number, access in enumerate(accesses):
            if (names := counters_of[number]) is None:
                self.fixed[id(access)] = access
            else:
                values = tuple([self.counters[name] for name in names])
                self.moving[index, number][values, id(access)] = access

    @staticmethod
    def counters_of(region: Region) -> tuple[str, ...] | None:
        """The counters of what of the region depends on the rank; None if nothing does."""
        exprs = [expr for expr in (region.offset, region.slot) if depends_on_rank((expr,))]
        if not exprs:
            return None
        return tuple(dict.fromkeys(leaf.name for leaf in leaves_of(exprs) if isinstance(leaf, Counter)))

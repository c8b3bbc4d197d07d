"""A device that does what another one does, which is proven, but on other rows: only those are looked at again.

Such rows are in storages that are addressed by the rank, or written by peers. Every conflict of two accesses needs
them to share rows, so one between other storages is the same on the device that is proven. Executed are the
operations on such storages, on storages that lie in the same rows of a pool, on the semaphores of their transfers, and
whatever decides that they are executed.
"""

from __future__ import annotations

from collections.abc import Sequence

from schedc.ir.program import BLOCKS, Op, Program, RemoteStart, Start, Wait, scalars_set, walk
from schedc.ir.verify.context import Context
from schedc.ir.verify.devices.roles import addresses, control, depends_on_rank, regions
from schedc.ir.verify.devices.turns import sharing
from schedc.ir.verify.logic import Facts
from schedc.ir.verify.machine import Machine, elsewhere
from schedc.ir.verify.peers import Peers
from schedc.ir.verify.state import Access, Element


class ByRank:
    """What of a program may be other rows on each device."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.moving = _moving(context.program)
        """Those that are addressed by the rank or written by peers."""
        self.storages = self.moving | _beside(context.program, self.moving)
        ops = context.source.ops
        self.semaphores = {op.semaphore.name for op in ops if isinstance(op, Start) and self._touches(op)}
        self.semaphores |= {op.sent.name for op in ops if isinstance(op, RemoteStart)} | context.shared
        self._needed: dict[int, bool] = {}

    def needs(self, op: Op) -> bool:
        """Whether the operation, or one within it, has to be executed."""
        if (known := self._needed.get(id(op))) is None:
            known = self._needs(op) or (isinstance(op, BLOCKS) and any(self.needs(inner) for inner in op.body))
            self._needed[id(op)] = known
        return known

    def _needs(self, op: Op) -> bool:
        return (
            self._context.communicates(op)
            or bool(scalars_set(op))
            or self._touches(op)
            or (isinstance(op, (Start, Wait)) and op.semaphore.name in self.semaphores)
            or depends_on_rank((*control(op), *addresses(op)))
        )

    def _touches(self, op: Op) -> bool:
        return any(region.storage in self.storages for region in regions(op))


def _moving(program: Program) -> frozenset[str]:
    read_only = {array.name for array in program.arrays if array.role in ("weight", "input")}
    found = {op.target.storage for op in walk(program.body) if isinstance(op, RemoteStart)}
    for op in walk(program.body):
        found |= {r.storage for r in regions(op) if depends_on_rank((r.offset, r.slot))} - read_only
    return frozenset(found)


def _beside(program: Program, storages: frozenset[str]) -> frozenset[str]:
    """What shares pool rows with them."""
    return frozenset(name for pair in sharing(program) if storages & set(pair) for name in pair)


class Placed(Machine):
    """Device `rank` as far as it has to do with what is `by_rank`."""

    def __init__(self, context: Context, rank: int, world: Facts, peers: Peers, by_rank: ByRank) -> None:
        self._by_rank = by_rank
        super().__init__(context, rank, world, peers)

    def skips(self, op: Op) -> bool:
        return not self._by_rank.needs(op)

    def start(self, index: int, source: Access, target: Access, element: Element) -> None:
        """Where it is here for its address alone, there is nothing to be seen of it later."""
        if element[0] in self._by_rank.semaphores:
            super().start(index, self._seen(source), self._seen(target), element)

    def remote_start(
        self, index: int, source: Access, target: Access, peer: int, sent: Element, arrived: Element
    ) -> None:
        super().remote_start(index, self._seen(source), target, peer, sent, arrived)

    def compute(self, index: int, accesses: Sequence[tuple[str, Access]]) -> None:
        super().compute(index, [(access, self._seen(rows)) for access, rows in accesses])

    def _seen(self, rows: Access) -> Access:
        return rows if rows.storage in self._by_rank.storages else elsewhere(rows)

"""Devices that do what a proven one does, on its rows under other numbers: then they are proven too.

Let two devices execute the same operations with the same counters, on the same semaphores, and hear of the same
transfers at the same events. If a bijection maps the rows of every access and every arrival of the one onto the rows
of the same access or arrival of the other, then every execution of the other is one of the first with the rows
renamed: two accesses share a row here if they do there, and a row holds what was written for the same storage by the
same operation. What goes wrong on the one goes wrong on the other. So nothing is executed again.

That the operations are the same is known of their conditions (`Roles.control`), what devices communicate was executed
for each of them (`Recorder`), and that the rows of each device lie in their storages, aligned, is checked here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from schedc.ir.expr import Binary, Const, Counter, Element, Expr, Rank, evaluate
from schedc.ir.program import Compute, Region, RemoteStart, Start
from schedc.ir.verify.devices.renaming import Rows, renames
from schedc.ir.verify.devices.roles import control, depends_on_rank, leaves_of, regions
from schedc.ir.verify.devices.witness import Counters, Witness
from schedc.ir.verify.peers import Peers, Schedule
from schedc.ir.verify.regions import TILE_ROWS
from schedc.ir.verify.state import Access, Transfer


class NoTwinError(Exception):
    """Nothing is wrong with the device, but it has to be proven by itself."""


class Twins:
    """The devices that may be proven by what a witness was proven on. It was not refused."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._rank = witness.rank
        self._tables = {s.name: s.values for s in witness.context.program.scalars if s.role == "table"}
        self._rooms = witness.turns.rooms()
        self._fixed = _Seen(self._rooms)
        for access in witness.fixed.values():
            self._fixed.stays(access)

    def have(self, rank: int, peers: Peers) -> bool:
        """Whether device `rank`, which has the witness' conditions, sees its peers do the same on renamed rows."""
        seen = _Seen(self._rooms)
        try:
            self._evaluate(rank)
            self._move(rank, seen)
            _arrive(self._witness.peers, peers, seen)
        except NoTwinError:
            return False
        return all(
            renames(rows | self._fixed.rows[room], seen.kept[room] | self._fixed.kept[room])
            for room, rows in seen.rows.items()
            if any(mine != theirs for mine, theirs, _ in rows)
        )

    def _evaluate(self, rank: int) -> None:
        """Conditions are the same, and numbers of computations decide nothing, but to compute them may be refused."""
        for op in self._witness.source.ops:
            for expr in control(op):
                self._shift(expr, None, rank)
            if isinstance(op, Compute):
                for _, value in op.scalars:
                    self._shift(value, None, rank)

    def _move(self, rank: int, seen: _Seen) -> None:
        """See the rows of the witness' accesses that depend on the rank, and those of the device's."""
        for (index, number), noted in self._witness.moving.items():
            op = self._witness.source.ops[index]
            region = regions(op)[number]
            names = Witness.counters_of(region)
            assert names is not None
            single = isinstance(op, (Start, RemoteStart)) and region.rows == 1
            for (values, _), access in noted.items():
                counters = dict(zip(names, values, strict=True))
                offset = self._shift(region.offset, counters, rank)
                slot = self._shift(region.slot, counters, rank)
                if offset or slot:
                    base = self._base(access, region, offset, slot, single)
                    seen.moves(access, base)
                else:
                    seen.stays(access)

    def _base(self, access: Access, region: Region, offset: int, slot: int, single: bool) -> int:
        """Where the rows begin whose offset and slot are so much larger. Raises NoTwinError if they may not be."""
        if type(access.base) is not int:
            raise NoTwinError
        buffer = self._witness.buffers.get(region.storage)
        if buffer is None:
            size, slots, aligned = self._witness.arrays[region.storage].rows, 1, True
        else:
            size, slots, aligned = buffer.rows, buffer.slots, single
        which, at = divmod(access.base - access.first, size)
        if not (0 <= which + slot < slots and 0 <= at + offset <= size - access.rows):
            raise NoTwinError
        shift = slot * size + offset
        if not aligned and shift % TILE_ROWS:
            raise NoTwinError
        return access.base + shift

    def _shift(self, expr: Expr, counters: Counters | None, rank: int) -> int:
        """How much larger the value is on the device. Raises NoTwinError where that depends on what is not known."""
        if not depends_on_rank((expr,)):
            return 0
        found = list(leaves_of((expr,)))
        if all(isinstance(leaf, Rank) or (isinstance(leaf, Element) and leaf.array in self._tables) for leaf in found):
            return self._value(expr, {}, rank) - self._value(expr, {}, self._rank)
        if isinstance(expr, Binary) and expr.op in ("+", "-"):
            left, right = (self._shift(side, counters, rank) for side in (expr.left, expr.right))
            return left + right if expr.op == "+" else left - right
        if isinstance(expr, Binary) and expr.op == "*":
            for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
                if isinstance(factor, Const):
                    return factor.value * self._shift(other, counters, rank)
        if counters is None:
            raise NoTwinError
        return self._value(expr, counters, rank) - self._value(expr, counters, self._rank)

    def _value(self, expr: Expr, counters: Counters, rank: int) -> int:
        """Raises NoTwinError where the value is not known, or refused."""
        match expr:
            case Const(value):
                return value
            case Rank():
                return rank
            case Counter(name):
                known = counters.get(name)
                if type(known) is int:
                    return known
            case Element(array, index) if array in self._tables:
                at, values = self._value(index, counters, rank), self._tables[array]
                if 0 <= at < len(values):
                    return values[at]
            case Binary(op, left, right):
                a, b = self._value(left, counters, rank), self._value(right, counters, rank)
                if op in ("+", "-", "*", "min", "max") or (a >= 0 and (b > 0 or (op == "^" and b == 0))):
                    return evaluate(Binary(op, Const(a), Const(b)), lambda _: 0, lambda *_: 0)
        raise NoTwinError


class _Seen:
    """By room, sets of rows of the witness with those of the device, and ranges in which no row may be another.

    A room is a space, or of buffers that share rows of it those that have to be renamed together.
    """

    def __init__(self, rooms: Mapping[str, str]) -> None:
        self._rooms = rooms
        self.rows: dict[str, set[Rows]] = defaultdict(set)
        self.kept: dict[str, set[tuple[int, int]]] = defaultdict(set)

    def stays(self, access: Access) -> None:
        """The same rows on both devices: wherever they are, if scalars decide that."""
        if type(access.base) is int:
            self.moves(access, access.base)
        else:
            self.kept[self._room(access)].add((min(access.low, access.lowest), max(access.high, access.highest)))

    def moves(self, access: Access, to: int) -> None:
        assert type(access.base) is int
        self.rows[self._room(access)].add((access.base, to, access.rows))

    def _room(self, access: Access) -> str:
        return self._rooms.get(access.storage, access.space)


def _arrive(mine: Peers, theirs: Peers, seen: _Seen) -> None:
    """See what arrives at both. Raises NoTwinError if that is not the same at the same events."""
    for _ in _pairs(mine.read, theirs.read):
        pass
    done: set[tuple[int, int]] = set()
    for a, b in _pairs(mine.arriving, theirs.arriving):
        here, there = a.target, b.target
        if (id(here), id(there)) in done:
            continue
        done.add((id(here), id(there)))
        if (here.space, here.storage, here.rows) != (there.space, there.storage, there.rows):
            raise NoTwinError
        if type(here.base) is not int or type(there.base) is not int:
            raise NoTwinError
        seen.moves(here, there.base)


def _pairs(mine: Schedule, theirs: Schedule) -> Iterator[tuple[Transfer, Transfer]]:
    if mine.keys() != theirs.keys():
        raise NoTwinError
    for events, found in mine.items():
        others = theirs[events]
        if len(found) != len(others):
            raise NoTwinError
        for a, b in zip(found, others, strict=True):
            if a.op != b.op or a.counters != b.counters or a.guard != b.guard or a.semaphore != b.semaphore:
                raise NoTwinError
            yield a, b

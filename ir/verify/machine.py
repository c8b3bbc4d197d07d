"""The symbolic machine of one device: runs a program in order, with symbolic scalars, and checks every operation."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count

from schedc.ir.program import Op
from schedc.ir.verify import hazards, signals, waits
from schedc.ir.verify.compile import Compiler, Node
from schedc.ir.verify.contents import Contents
from schedc.ir.verify.context import Context, EnoughError
from schedc.ir.verify.linear import Value, sub
from schedc.ir.verify.logic import AbortError, Condition, Facts
from schedc.ir.verify.peers import Peers
from schedc.ir.verify.state import Access, Counters, Element, State, Transfer
from schedc.ir.verify.verdict import Place, Refusal, Statistics

_COUNTED = 10


class Machine:
    """Device `rank` in a world where `world` holds."""

    inducts = True
    """Whether loops in which devices communicate may be proven by induction."""

    def __init__(self, context: Context, rank: int = 0, world: Facts = (), peers: Peers | None = None) -> None:
        self.context, self.rank = context, rank
        self.source, self.atoms, self.logic = context.source, context.atoms, context.logic
        self.buffers, self.arrays, self.scalars = context.buffers, context.arrays, context.scalars
        self.counters: dict[str, Value] = {}
        self.facts: Facts = world
        self.world = world
        self.spoiled: set[Element] = set()
        """Semaphores of which something was refused so that what they hold is not known any more."""
        self.overlaps: dict[tuple[Value, int, int, Facts, Facts], bool] = {}
        """Of two accesses at a distance, with their rows, the facts and a guard: whether they may share a row."""
        self.resolved: dict[Hashable, Access] = {}
        """The rows of a region, by its number, offset and slot, and by the facts if those depend on scalars."""
        self.region_numbers = count()
        self.inductions = 0
        self.last_start: dict[Element, Transfer] = {}
        self.examined = self.transfers = self.skipped = self.peak_transfers = self.peak_rows = 0
        self.state = State(self.logic.reach, contents={space: Contents() for space in context.spaces})
        self.peers = peers or Peers()
        self._current = 0
        self._body = Compiler(self).block(context.program.body, frozenset())

    def verify(self) -> Statistics:
        """Execute the program. Raises EnoughError."""
        try:
            self._arrive()
            self.execute()
            waits.check_end(self)
            signals.check_end(self)
        except EnoughError:
            pass
        finally:
            self.release()
        return Statistics(self.examined, self.transfers, self.peak_transfers, self.peak_rows, self.skipped)

    def execute(self) -> None:
        self.run(self._body)

    def release(self) -> None:
        """Forget the compiled program, whose functions refer to this machine as it does to them."""
        for node in self._body:
            node.release()
        self._body = []

    def run(self, nodes: list[Node]) -> None:
        for node in nodes:
            self._current = node.index
            self.examined += 1
            if self.examined % _COUNTED == 0:
                self.context.executed(_COUNTED, self.place)
            node.run()

    def skips(self, op: Op) -> bool:
        """Whether the operation is not executed."""
        return False

    # What operations do.

    def start(self, index: int, source: Access, target: Access, element: Element) -> None:
        hazards.check_read(self, source)
        hazards.check_write(self, target)
        hazards.check_own_overlap(self, source, target)
        self._launch(Transfer(index, self.now(), source, target, element, self.facts))
        self._communicated(element)

    def remote_start(
        self, index: int, source: Access, target: Access, peer: int, sent: Element, arrived: Element
    ) -> None:
        """Here it only reads: the peer's machine sees it arrive."""
        hazards.check_read(self, source)
        hazards.check_role(self, target)
        self._launch(Transfer(index, self.now(), source, elsewhere(target), sent, self.facts))
        self._communicated(arrived)

    def wait(self, element: Element, rows: int) -> None:
        waits.wait(self, element, rows)
        self._communicated(element)

    def signal(self, element: Element, amount: int, peer: int | None) -> None:
        if element[0] not in self.context.shared:
            signals.signal(self, element, amount)
        self._communicated(element)

    def take(self, element: Element, amount: int) -> None:
        if element[0] not in self.context.shared:
            signals.take(self, element, amount)
        self._communicated(element)

    def barrier(self) -> None:
        self._count_event()

    def compute(self, index: int, accesses: Sequence[tuple[str, Access]]) -> None:
        reads = [rows for access, rows in accesses if access != "write"]
        writes = [rows for access, rows in accesses if access != "read"]
        for rows in reads:
            hazards.check_read(self, rows)
        for rows in writes:
            hazards.check_write(self, rows)
        hazards.check_operands(self, reads, writes)
        for rows in writes:
            hazards.written(self, rows, self.facts, index)

    def _launch(self, transfer: Transfer) -> None:
        state = self.state
        state.transfers.append(transfer)
        self.last_start[transfer.semaphore] = transfer
        self.transfers += 1
        self.peak_transfers = max(self.peak_transfers, len(state.transfers))
        self.peak_rows = max(self.peak_rows, state.transfers.rows)

    def _communicated(self, element: Element) -> None:
        if element[0] in self.context.shared:
            self._count_event()

    def _count_event(self) -> None:
        if self.context.devices > 1:
            self.state.events += 1
            self._arrive()

    def _arrive(self) -> None:
        """From here on, what peers may have started writes to this device, and what they have got is read."""
        for received in self.peers.read.get(self.state.events, ()):
            own = [t for t in self.state.transfers if t.op == received.op and t.device is None]
            for transfer in own:
                if transfer.counters == received.counters:
                    self.ends(transfer, self.facts)
                    self.state.transfers.replace(transfer, [replace(transfer, source=elsewhere(transfer.source))])
        for transfer in self.peers.arriving.get(self.state.events, ()):
            hazards.check_arrival(self, transfer)
            self._launch(replace(transfer))

    def ends(self, transfer: Transfer, facts: Facts) -> None:
        """Where the facts hold, the transfer does not use its rows on this device any more."""

    def covers(self, value: Value, cases: set[int]) -> bool:
        """Whether the value of a switch surely has a case; refused if not."""
        if (number := self._uncovered(value, cases)) is not None:
            self.refuse(
                "no-case",
                f"{self.place()} has no case for {number}, which {self.atoms.text(value)} may be",
                f"add a case {number}",
            )
            return False
        return True

    def _uncovered(self, value: Value, cases: set[int]) -> int | None:
        possible = self.atoms.possible(value)
        least, most = min(cases, default=1), max(cases, default=0)
        first, end = bisect_left(possible, least), bisect_right(possible, most)
        if first and not self.logic.proves(sub(value, least), self.facts):
            return possible[first - 1]
        if end < len(possible) and not self.logic.proves(sub(most, value), self.facts):
            return possible[end]
        for number in possible[first:end]:
            if number not in cases:
                condition = self.logic.compare("==", value, number)
                if condition is True or (
                    isinstance(condition, Condition) and not self.logic.contradicted(condition, self.facts)
                ):
                    return number
        return None

    # What the rules ask.

    def with_facts(self, guard: Facts) -> Facts:
        if not guard:
            return self.facts
        return self.facts + tuple(condition for condition in guard if condition not in self.facts)

    def is_read_only(self, storage: str) -> bool:
        return storage in self.arrays and self.arrays[storage].role in ("weight", "input")

    def index(self) -> int:
        return self._current

    def line(self) -> int:
        return self.source.lines[self._current]

    def now(self) -> Counters:
        return tuple(self.counters.items())

    # What refusals say.

    def place(self) -> Place:
        return self.place_of(self._current, self.now())

    def place_of(self, index: int, counters: Counters, device: int | None = None) -> Place:
        """An operation of this device, or of the given one."""
        known = tuple((name, value if type(value) is int else self.atoms.text(value)) for name, value in counters)
        several = self.context.devices > 1
        return self.source.place(index, known, (self.rank if device is None else device) if several else None)

    def place_of_transfer(self, transfer: Transfer) -> Place:
        return self.place_of(transfer.op, transfer.counters, transfer.device)

    def is_ahead(self, transfer: Transfer) -> bool:
        """Whether a peer started it in a later iteration than the one that this device is in."""
        if transfer.device is None:
            return False
        steps = [sub(then, self.counters[name]) for name, then in transfer.counters if name in self.counters]
        return any(type(step) is int and step > 0 for step in steps[:1])

    def distance(self, counters: Counters) -> str:
        """How many iterations ago, in words."""
        parts = []
        for name, then in counters:
            steps = sub(self.counters[name], then) if name in self.counters else 0
            if type(steps) is int and steps:
                parts.append(
                    f"{abs(steps)} iteration{'s' * (abs(steps) > 1)} of {name} {'ago' if steps > 0 else 'ahead'}"
                )
        return f", started {', '.join(parts)}" if parts else ""

    def has_refused(self, rule: str, other: int) -> bool:
        """Whether the current operation was refused by the rule because of this other one."""
        return (rule, self._current, other, other) in self.context.refusals

    def refuse(
        self,
        rule: str,
        what: str,
        repair: str,
        other: Place | None = None,
        *,
        storage: str = "",
        key: Hashable = None,
        at: Place | None = None,
    ) -> None:
        """Record the first refusal of its kind and place. Raises `AbortError` within an induction."""
        refusal = Refusal(rule, what, repair, at if at is not None else self.place(), other, storage)
        if self.inductions and self.context.identity(refusal, key) not in self.context.refusals:
            raise AbortError
        self.context.refuse(refusal, key)


def elsewhere(target: Access) -> Access:
    """The rows of a transfer at the end that is not on this device: they conflict with nothing here."""
    return _elsewhere(target.storage, target.rows)


@cache
def _elsewhere(storage: str, rows: int) -> Access:
    return Access("", storage, 0, rows, 0, 0, 0, 0, 0)

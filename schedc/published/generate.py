"""From a published schedule to a program of the IR: the same transfers, waits and exchanges, computations by cycles.

A computation is of the kind `measured` and has its issue cycles as an attribute. It reads what its step needs and
writes what its step sends, so that the proof of the program is one of the published order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, add, floordiv, mul
from schedc.ir.program import (
    Barrier,
    Buffer,
    Case,
    Compute,
    Loop,
    Op,
    Operand,
    Pool,
    Program,
    Scalars,
    Switch,
    When,
    table,
)
from schedc.ir.program import Phase as PhaseOp
from schedc.published.demand import Demand
from schedc.published.exchange_ops import ExchangeOps
from schedc.published.form import (
    MIB,
    Choose,
    Members,
    Names,
    Phase,
    PublishedSchedule,
    Settle,
    Start,
    StartNext,
    Step,
    Store,
    Through,
    rows_of,
)
from schedc.published.moved import ExpertOps, Layers, Moved, StreamOps, TensorOps, in_vmem

POOL = "vmem"
MEASURED = "measured"
"""The kind of a computation that is known by its cycles alone."""


def program_of(schedule: PublishedSchedule, demand: Demand, expected_experts: int) -> Program:
    """`expected_experts` of a device tell after which winners the transfers of own experts are placed."""
    return _Generator(schedule, demand, expected_experts).program()


@dataclass(frozen=True)
class _Generator:
    schedule: PublishedSchedule
    demand: Demand
    expected: int

    @cached_property
    def layers(self) -> Layers:
        return Layers(self.schedule)

    @cached_property
    def tensors(self) -> dict[str, TensorOps]:
        return {
            name: TensorOps(name, tensor, self.layers, self.demand.sequences if tensor.per == "sequence" else 1)
            for name, tensor in self.schedule.tensors.items()
        }

    @cached_property
    def streams(self) -> dict[str, StreamOps]:
        return {n: StreamOps(n, stream, self.layers, self.demand) for n, stream in self.schedule.streams.items()}

    @cached_property
    def experts(self) -> ExpertOps:
        return ExpertOps(self.schedule.experts, self.layers)

    @cached_property
    def exchanges(self) -> dict[str, ExchangeOps]:
        return {n: ExchangeOps.of(n, e, self.demand.rows) for n, e in self.schedule.exchanges.items()}

    @property
    def most(self) -> int:
        """Experts of a device that a step can choose."""
        return min(self.schedule.experts.members, self.schedule.experts.top_k * self.demand.rows)

    @property
    def kind_names(self) -> Names:
        return tuple(self.schedule.kinds)

    def program(self) -> Program:
        schedule = self.schedule
        moved: list[Moved] = [*self.tensors.values(), *self.streams.values(), self.experts]
        buffers = self._buffers()
        return Program(
            name=schedule.name.replace("-", "_"),
            pools=(Pool(POOL, sum(buffer.rows for buffer in buffers)),),
            buffers=buffers,
            arrays=tuple(ops.array() for ops in moved),
            scalars=(
                *self.layers.tables(),
                self._kind_table(),
                Scalars("chosen", self.most, 0, schedule.experts.members - 1, "local"),
                Scalars("count", 1, 0, self.most, "local"),
            ),
            semaphores=tuple(s for ops in [*moved, *self.exchanges.values()] for s in ops.semaphores()),
            body=tuple(self._body()),
            devices=schedule.devices,
            attributes=(
                ("schedule", schedule.title),
                ("target", schedule.target),
                ("step", self.demand.name),
                ("context", self.demand.context),
                ("position", self.demand.position),
            ),
        )

    def _buffers(self) -> tuple[Buffer, ...]:
        """One after the other; what lies at the same address lies in the same region."""
        found: list[Buffer] = []
        for name, region in self.schedule.regions.items():
            times = self.demand.sequences if region.per == "sequence" else 1
            found.append(Buffer(in_vmem(name), POOL, rows_of(region.mib * MIB) * times))
        found += [buffer for ops in self.exchanges.values() for buffer in ops.buffers(POOL)]
        placed, at = [], 0
        for buffer in found:
            placed.append(Buffer(buffer.name, POOL, buffer.rows, address=at))
            at += buffer.rows
        return tuple(placed)

    def _kind_table(self) -> Scalars:
        """The kind of every layer, and behind the last one a number that no kind has."""
        kinds = [self.kind_names.index(kind) for kind in self.schedule.layer_kinds]
        return table("kind", (*kinds, len(self.kind_names)))

    def _body(self) -> Iterator[Op]:
        schedule, kinds = self.schedule, self.schedule.layer_kinds
        yield Barrier()
        yield from self._steps(schedule.before, Const(-1), "", (kinds[0],))
        for first in range(schedule.peeled):
            following = kinds[first + 1 : first + 2]
            yield from self._layer(Const(first), (kinds[first],), following, not following)
        rest = kinds[schedule.peeled :]
        if rest:
            layer = add(Counter("l"), schedule.peeled)
            body = tuple(self._layer(layer, _distinct(rest), _distinct(rest[1:]), True))
            yield Loop("l", Const(len(rest)), body)
        yield from self._steps(schedule.after, Const(len(kinds)), "", ())

    def _layer(self, layer: Expr, kinds: Names, following: Names, may_end: bool) -> Iterator[Op]:
        """A layer that is one of `kinds`, before one of `following` or, if it `may_end`, before none."""
        for place in range(max(len(self.schedule.kinds[kind]) for kind in kinds)):
            parts = {kind: self.schedule.kinds[kind][place] for kind in kinds if place < len(self.schedule.kinds[kind])}
            cases = {
                kind: tuple(self._steps(self.schedule.parts[part], layer, kind, following, may_end))
                for kind, part in parts.items()
            }
            yield from self._by_kind(layer, cases)

    def _by_kind(self, layer: Expr, cases: dict[str, tuple[Op, ...]]) -> Iterator[Op]:
        """Without a switch where all kinds do the same."""
        if len(set(cases.values())) <= 1:
            yield from next(iter(cases.values()), ())
            return
        numbers = {kind: self.kind_names.index(kind) if kind else len(self.kind_names) for kind in cases}
        selected = sorted((numbers[kind], body) for kind, body in cases.items())
        yield Switch(Element("kind", layer), tuple(Case(number, body) for number, body in selected))

    def _steps(
        self, steps: Sequence[Step], layer: Expr, kind: str, following: Names, may_end: bool = False
    ) -> Iterator[Op]:
        """Of a layer of that `kind`; "": before the first layer or behind the last."""
        for step in steps:
            match step:
                case Start(tensors=tensors):
                    mine = (name for name in tensors if self._has(kind, name))
                    yield from (op for name in mine for op in self._started(name, layer))
                case StartNext(tensors=tensors):
                    yield from self._start_next(tensors, add(layer, 1), following, may_end)
                case Phase():
                    yield PhaseOp(step.name, tuple(self._phase(step)))
                case Through():
                    yield PhaseOp(step.name, tuple(self._through(step, layer)))
                case Store(tensors=tensors):
                    yield from (op for name in tensors for op in self.tensors[name].store(layer))
                case Settle(tensors=tensors):
                    yield from (self.tensors[name].settle() for name in tensors)
                case Choose():
                    yield PhaseOp(step.name, tuple(self._choose(step, layer)))
                case Members():
                    then = tuple(self._start_next(step.then_next, add(layer, 1), following, may_end))
                    yield PhaseOp(step.name, tuple(self._members(step, layer, then)))

    def _started(self, name: str, layer: Expr) -> tuple[Op, ...]:
        ops = self.tensors[name] if name in self.tensors else self.streams[name]
        return ops.starts(layer)

    def _start_next(self, names: Names, layer: Expr, kinds: Names, may_end: bool) -> Iterator[Op]:
        """Of the next layer what it has, behind the last layer what no layer has."""
        cases = {
            kind: tuple(op for name in names if self._has(kind, name) for op in self._started(name, layer))
            for kind in (*kinds, *([""] if may_end else []))
        }
        yield from self._by_kind(layer, cases)

    def _has(self, kind: str, name: str) -> bool:
        users = self.schedule.users(name)
        return any(part in users for part in self.schedule.kinds[kind]) if kind else not users

    def _cycles(self, cycles: float) -> float:
        return round(cycles * self.demand.scale(self.schedule), 3)

    def _phase(self, step: Phase) -> Iterator[Op]:
        """A tensor of several tiles is gone through tile by tile, whole ones before it.

        The cycles are shared by the tiles alike; each wait but the first costs what the MXU needs to drain.
        """
        for name in step.receives:
            yield from self.exchanges[name].receive()
        received = tuple(self.exchanges[name].read() for name in step.receives)
        sent = tuple(self.tensors[name].written() for name in step.writes)
        sent += tuple(self.exchanges[name].written() for name in step.sends)
        tiled = sorted((self.tensors[name] for name in step.needs), key=lambda ops: ops.tensor.tiles)
        laps = [[(ops, 0) for ops in tiled if ops.tensor.tiles == 1]]
        laps += [[(ops, tile)] for ops in tiled if ops.tensor.tiles > 1 for tile in range(ops.tensor.tiles)]
        if len(laps) > 1 and not laps[0]:
            laps = laps[1:]
        for index, lap in enumerate(laps):
            yield from (ops.wait(tile) for ops, tile in lap)
            reads = tuple(ops.read(tile) for ops, tile in lap)
            cycles = self._cycles(step.cycles / len(laps) + (self.schedule.tile_cost.cycles if index else 0.0))
            yield _measured(cycles, (*received, *reads, *(sent if index == len(laps) - 1 else ())))
        for name in step.sends:
            yield from self.exchanges[name].send()

    def _through(self, step: Through, layer: Expr) -> Iterator[Op]:
        ops = self.streams[step.stream]
        counter, slots = Counter(f"tile_{step.name}"), ops.stream.slots
        following = add(counter, slots)
        body: list[Op] = [ops.wait(counter), _measured(ops.cycles(), (ops.read(counter),))]
        if ops.trips > slots:
            body.append(When((Compare("<", following, Const(ops.trips)),), ops.start(layer, following)))
        yield Loop(counter.name, Const(ops.trips), tuple(body))

    def _choose(self, step: Choose, layer: Expr) -> Iterator[Op]:
        experts = self.schedule.experts
        first, count = min(experts.ahead, self.most), Element("count", Const(0))
        places = winners_of(first, experts.top_k, self.expected)
        sets = (("ids", "chosen"), ("count", "count"))
        for winner in range(1, experts.top_k + 1):
            sends = step.sends if winner == step.send_after else ()
            writes = tuple(self.exchanges[name].written() for name in sends)
            yield _measured(self._cycles(step.cycles), writes, sets if winner == 1 else ())
            for name in sends:
                yield from self.exchanges[name].send()
            for member in (member for member, place in enumerate(places) if place == winner):
                yield When((Compare("<", Const(member), count),), self.experts.start(layer, Const(member)))

    def _members(self, step: Members, layer: Expr, then: tuple[Op, ...]) -> Iterator[Op]:
        experts, count, lap = self.schedule.experts, Element("count", Const(0)), Counter("pass")
        passes = floordiv(add(count, experts.at_once - 1), experts.at_once)
        if then:
            yield When((Compare("==", count, Const(0)),), then)
        last = (Compare(">=", mul(add(lap, 1), experts.at_once), count),)
        then = (When(last, then),) if then else ()
        yield Loop(lap.name, passes, tuple(self._pass(step, layer, lap, count, then)))

    def _pass(self, step: Members, layer: Expr, lap: Expr, count: Expr, then: tuple[Op, ...]) -> Iterator[Op]:
        """A pass over some experts, with `then` behind the waits."""
        experts, cycles = self.schedule.experts, self._cycles(step.cycles)
        members = [add(mul(lap, experts.at_once), index) for index in range(experts.at_once)]

        def each(ops: Callable[[Expr], tuple[Op, ...]], ahead: int = 0) -> list[Op]:
            return [When((Compare("<", add(m, ahead), count),), ops(add(m, ahead))) for m in members]

        yield from each(lambda member: (self.experts.wait(member),))
        yield from then
        compute = each(lambda member: (_measured(cycles, (self.experts.read(member),)),))
        refill = each(lambda member: self.experts.start(layer, member), experts.ahead)
        if self.most <= experts.ahead:
            yield from compute
        elif experts.ahead + experts.at_once <= experts.slots:
            yield from (*refill, *compute)
        else:
            yield from (*compute, *refill)


def winners_of(first: int, top_k: int, expected: int) -> tuple[int, ...]:
    """After which of `top_k` winners the `first` own experts are known, if `expected` of a device are spread evenly."""
    return tuple(min(top_k, -(-(member + 1) * (top_k + 1) // (expected + 1))) for member in range(first))


def _measured(cycles: float, operands: tuple[Operand, ...], sets: tuple[tuple[str, str], ...] = ()) -> Compute:
    return Compute(MEASURED, operands, attributes=(("cycles", cycles),), sets=sets)


def _distinct(kinds: Names) -> Names:
    return tuple(dict.fromkeys(kinds))

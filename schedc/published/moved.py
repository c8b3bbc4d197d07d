"""Tensors, streams and experts as storage in HBM and VMEM, and the starts and waits of their transfers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from schedc.ir.expr import Const, Element, Expr, add, mod, mul
from schedc.ir.program import Array, Op, Operand, Region, Scalars, Semaphore, SemaphoreRef, Start, Wait, table
from schedc.published.demand import Demand
from schedc.published.form import EXPERTS, MIB, Experts, PublishedSchedule, Stream, Tensor, rows_of


@dataclass(frozen=True)
class Layers:
    """Which layers have what: where the tensor of a layer lies among those of all layers that have it."""

    schedule: PublishedSchedule

    def place(self, name: str, layer: Expr) -> Expr:
        layers = self.schedule.layers_of(name)
        if len(layers) <= 1:
            return Const(0)
        if len(layers) == len(self.schedule.layer_kinds):
            return layer
        return Element(self.table_name(name), layer)

    def table_name(self, name: str) -> str:
        return f"place.{'.'.join(self.schedule.users(name))}"

    def tables(self) -> tuple[Scalars, ...]:
        found: dict[str, Scalars] = {}
        count = len(self.schedule.layer_kinds)
        for name in (*self.schedule.tensors, *self.schedule.streams, EXPERTS):
            layers = self.schedule.layers_of(name)
            if 1 < len(layers) < count:
                values = tuple(sum(other < layer for other in layers) for layer in range(count))
                last = len(layers) - 1
                found[self.table_name(name)] = table(self.table_name(name), tuple(min(v, last) for v in values))
        return tuple(found.values())


@dataclass(frozen=True)
class TensorOps:
    name: str
    tensor: Tensor
    layers: Layers
    times: int
    """How often it is there: once, or for every sequence."""

    @property
    def tile_rows(self) -> int:
        """A multiple of 8 for each transfer."""
        return rows_of(self.tensor.mib * MIB / self.tensor.tiles)

    @property
    def rows(self) -> int:
        return self.tile_rows * self.tensor.tiles * self.times

    def array(self) -> Array:
        count = max(1, len(self.layers.schedule.layers_of(self.name)))
        return Array(self.name, self.rows * count, "state" if self.tensor.role == "state" else "weight")

    def semaphores(self) -> tuple[Semaphore, ...]:
        stored = (Semaphore(f"{self.name}.stored"),) if self.tensor.role == "state" else ()
        return (Semaphore(self.name, self.tensor.tiles), *stored)

    def region(self, tile: int) -> Region:
        rows = self.tile_rows * self.times
        return Region(
            in_vmem(self.tensor.region), rows, Const(rows_of(self.tensor.at_mib * MIB) * self.times + tile * rows)
        )

    def starts(self, layer: Expr) -> tuple[Op, ...]:
        return tuple(op for tile in range(self.tensor.tiles) for op in self.start(layer, tile))

    def start(self, layer: Expr, tile: int) -> tuple[Op, ...]:
        target = self.region(tile)
        first = add(mul(self.layers.place(self.name, layer), self.rows), tile * target.rows)
        pieces = _pieces(target.rows, self.tensor.descriptors * self.times)
        return tuple(
            Start(
                Region(self.name, rows, add(first, at)),
                Region(target.storage, rows, add(target.offset, at)),
                SemaphoreRef(self.name, Const(tile)),
            )
            for at, rows in pieces
        )

    def wait(self, tile: int) -> Wait:
        return Wait(SemaphoreRef(self.name, Const(tile)), self.tile_rows * self.times)

    def read(self, tile: int) -> Operand:
        return Operand(self.name, "update" if self.tensor.role == "state" else "read", self.region(tile))

    def written(self) -> Operand:
        return Operand(self.name, "write", self.region(0))

    def store(self, layer: Expr) -> tuple[Op, ...]:
        offset = mul(self.layers.place(self.name, layer), self.rows)
        target = Region(self.name, self.rows, offset)
        return (Start(self.region(0), target, SemaphoreRef(f"{self.name}.stored")),)

    def settle(self) -> Wait:
        return Wait(SemaphoreRef(f"{self.name}.stored"), self.rows)


@dataclass(frozen=True)
class StreamOps:
    name: str
    stream: Stream
    layers: Layers
    demand: Demand

    @property
    def times(self) -> int:
        """Transfers a tile: one for every sequence of a cache."""
        return 1 if self.stream.tokens is None else self.demand.sequences

    @property
    def tile_rows(self) -> int:
        return rows_of(self.stream.mib * MIB) * self.times

    @property
    def trips(self) -> int:
        return self.stream.tiles or self.demand.tiles(self.stream.tokens or 1)

    @property
    def held(self) -> int:
        """Tiles of a layer that there is room for in HBM."""
        return self.stream.tiles or ceil(self.demand.context / (self.stream.tokens or 1))

    def array(self) -> Array:
        count = max(1, len(self.layers.schedule.layers_of(self.name)))
        return Array(self.name, self.tile_rows * self.held * count, "weight" if self.stream.tiles else "state")

    def semaphores(self) -> tuple[Semaphore, ...]:
        return (Semaphore(self.name, self.stream.slots),)

    def slot(self, tile: Expr) -> Expr:
        return mod(tile, self.stream.slots)

    def region(self, tile: Expr) -> Region:
        times = self.times if self.stream.tokens else 1
        first = rows_of(self.stream.at_mib * MIB) * times
        return Region(in_vmem(self.stream.region), self.tile_rows, add(first, mul(self.slot(tile), self.tile_rows)))

    def starts(self, layer: Expr) -> tuple[Op, ...]:
        first = range(min(self.stream.slots, self.trips))
        return tuple(op for tile in first for op in self.start(layer, Const(tile)))

    def start(self, layer: Expr, tile: Expr) -> tuple[Op, ...]:
        target = self.region(tile)
        first = mul(add(mul(self.layers.place(self.name, layer), self.held), tile), self.tile_rows)
        return tuple(
            Start(
                Region(self.name, rows, add(first, at)),
                Region(target.storage, rows, add(target.offset, at)),
                SemaphoreRef(self.name, self.slot(tile)),
            )
            for at, rows in _pieces(self.tile_rows, self.times)
        )

    def wait(self, tile: Expr) -> Wait:
        return Wait(SemaphoreRef(self.name, self.slot(tile)), self.tile_rows)

    def read(self, tile: Expr) -> Operand:
        return Operand(self.name, "read", self.region(tile))

    def cycles(self) -> float:
        """Of one tile, in a line between the numbers of rows for which they are known."""
        known = sorted((int(rows), cycles) for rows, cycles in self.stream.cycles.items())
        rows = self.demand.rows
        below = max((item for item in known if item[0] <= rows), default=known[0])
        above = min((item for item in known if item[0] >= rows), default=known[-1])
        if below[0] == above[0]:
            return below[1]
        return below[1] + (above[1] - below[1]) * (rows - below[0]) / (above[0] - below[0])


@dataclass(frozen=True)
class ExpertOps:
    experts: Experts
    layers: Layers

    @property
    def rows(self) -> int:
        return rows_of(self.experts.mib * MIB)

    def array(self) -> Array:
        count = max(1, len(self.layers.schedule.layers_of(EXPERTS)))
        return Array(EXPERTS, self.rows * self.experts.members * count, "weight")

    def semaphores(self) -> tuple[Semaphore, ...]:
        return (Semaphore(EXPERTS, self.experts.slots),)

    def slot(self, member: Expr) -> Expr:
        return mod(member, self.experts.slots)

    def region(self, member: Expr) -> Region:
        first = rows_of(self.experts.at_mib * MIB)
        return Region(in_vmem(self.experts.region), self.rows, add(first, mul(self.slot(member), self.rows)))

    def start(self, layer: Expr, member: Expr) -> tuple[Op, ...]:
        target, chosen = self.region(member), Element("chosen", member)
        place = add(mul(self.layers.place(EXPERTS, layer), self.experts.members), chosen)
        return tuple(
            Start(
                Region(EXPERTS, rows, add(mul(place, self.rows), at)),
                Region(target.storage, rows, add(target.offset, at)),
                SemaphoreRef(EXPERTS, self.slot(member)),
            )
            for at, rows in _pieces(self.rows, self.experts.descriptors)
        )

    def wait(self, member: Expr) -> Wait:
        return Wait(SemaphoreRef(EXPERTS, self.slot(member)), self.rows)

    def read(self, member: Expr) -> Operand:
        return Operand(EXPERTS, "read", self.region(member))


Moved = TensorOps | StreamOps | ExpertOps


def in_vmem(region: str) -> str:
    """The buffer that a region is: tensors are called like what they are, also in HBM."""
    return f"vmem.{region}"


def _pieces(rows: int, count: int) -> list[tuple[int, int]]:
    """(offset, rows) of `count` transfers that together move `rows`, each of whole tiles of 8."""
    size = -(-rows // (8 * count)) * 8
    return [(at, min(size, rows - at)) for at in range(0, rows, size)]

"""The nodes of a schedule: what each device executes, in order. All devices run the same program.

A program declares its storage (VMEM buffers in pools, HBM arrays, scalar arrays in SMEM,
semaphores) and a body of operations. The core executes the body in order; a transfer runs
by itself between its `Start` and the `Wait` that forces its completion.

All data are rows of 128 32-bit words (512 bytes). Regions, transfers and DMA semaphores
count in such rows: a transfer of n rows adds n to its semaphore, piece by piece as rows come in
no order that is known, the last when it completes; a wait for n rows blocks until the semaphore
holds n and then takes n away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar

from schedc.ir.expr import Compare, Const, Expr

ROW_BYTES = 512
"""Bytes of one row: 128 lanes of 32-bit words."""

Attribute = int | float | str | bool


@dataclass(frozen=True)
class Pool:
    """A block of VMEM, `int32[rows, 128]`, out of which buffers are cut. `rows` is 0 until it is allocated."""

    name: str
    rows: int = 0


@dataclass(frozen=True)
class Buffer:
    """`slots` equal runs of `rows` pool rows, one after the other from pool row `address` (None: not allocated)."""

    name: str
    pool: str
    rows: int
    slots: int = 1
    address: int | None = None
    align: int = 8
    """The address is a multiple of this many rows."""


@dataclass(frozen=True)
class Array:
    """An HBM array `int32[rows, 128]`. State is donated: input and output are the same bytes."""

    name: str
    rows: int
    role: Literal["weight", "input", "state", "output"]


@dataclass(frozen=True)
class Scalars:
    """An SMEM array of `length` integers, each within `low..high`.

    That is a precondition of an `input`, which every device gets the same values of, and proven of a `local`, save
    for what computations set: there it is trusted, as what they do to their operands is.
    A `table` holds the constants `values`. `distinct` elements of an `input` that a step reads at different places
    differ, such as the pages of a cache: a precondition too.
    """

    name: str
    length: int
    low: int
    high: int
    role: Literal["input", "local", "table"]
    values: tuple[int, ...] = ()
    distinct: bool = False


def table(name: str, values: tuple[int, ...]) -> Scalars:
    """A table of constants, such as the kind of each layer."""
    return Scalars(name, len(values), min(values, default=0), max(values, default=0), "table", values)


@dataclass(frozen=True)
class Semaphore:
    """`count` counters of one name: `dma` ones count rows of transfers, `regular` ones what is signalled."""

    name: str
    count: int = 1
    kind: Literal["dma", "regular"] = "dma"


@dataclass(frozen=True)
class Region:
    """`rows` rows of `storage` from row `offset` of slot `slot` (slot 0 and HBM: offset alone)."""

    storage: str
    rows: int
    offset: Expr = field(default_factory=lambda: Const(0))
    slot: Expr = field(default_factory=lambda: Const(0))


@dataclass(frozen=True)
class SemaphoreRef:
    """One of the counters of a semaphore."""

    name: str
    index: Expr = field(default_factory=lambda: Const(0))


@dataclass(frozen=True)
class Start:
    """Start an asynchronous copy of `source` to `target` (same number of rows)."""

    source: Region
    target: Region
    semaphore: SemaphoreRef


@dataclass(frozen=True)
class RemoteStart:
    """Start an asynchronous copy of `source` to `target` on device `peer`.

    This device's semaphore `sent` gets the rows when the source has been read, the peer's semaphore
    `arrived` when they are written.
    """

    source: Region
    target: Region
    peer: Expr
    sent: SemaphoreRef
    arrived: SemaphoreRef


@dataclass(frozen=True)
class Wait:
    """Take `rows` from a DMA semaphore, blocking until it holds that many."""

    semaphore: SemaphoreRef
    rows: int


@dataclass(frozen=True)
class Signal:
    """Add `amount` to a regular semaphore of device `peer`, of this device if that is None."""

    semaphore: SemaphoreRef
    amount: int = 1
    peer: Expr | None = None


@dataclass(frozen=True)
class Await:
    """Take `amount` from a regular semaphore, blocking until it holds that many."""

    semaphore: SemaphoreRef
    amount: int = 1


@dataclass(frozen=True)
class Barrier:
    """Go on when every device has come as far. The first one also says that the peers' kernels have begun."""


@dataclass(frozen=True)
class Operand:
    """A named argument of a computation and how it is accessed."""

    name: str
    access: Literal["read", "write", "update"]
    region: Region

    @property
    def reads(self) -> bool:
        return self.access != "write"

    @property
    def writes(self) -> bool:
        return self.access != "read"


@dataclass(frozen=True)
class Compute:
    """A computation on the core: the body named `kind`, its operands, scalar arguments and static attributes.

    It may also write scalars, such as the experts that a router chose: `sets` names by parameter the local SMEM
    arrays whose every element it sets, each to some value of the array's range, on every device its own.
    """

    kind: str
    operands: tuple[Operand, ...]
    scalars: tuple[tuple[str, Expr], ...] = ()
    attributes: tuple[tuple[str, Attribute], ...] = ()
    sets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class SetScalar:
    """`array[index] = value` in SMEM."""

    array: str
    index: Expr
    value: Expr


class _Block:
    """An operation with others in it."""

    body: tuple[Op, ...]

    @cached_property
    def size(self) -> int:
        """Operations in it at any depth, with itself."""
        return 1 + sum(map(size, self.body))


@dataclass(frozen=True)
class Loop(_Block):
    """Run `body` with `counter` = 0 … trips-1. `unroll` only says how it is emitted (a traced Python loop)."""

    counter: str
    trips: Expr
    body: tuple[Op, ...]
    unroll: bool = False


@dataclass(frozen=True)
class When(_Block):
    """Run `body` if every comparison holds."""

    conditions: tuple[Compare, ...]
    body: tuple[Op, ...]


@dataclass(frozen=True)
class Case(_Block):
    """What a `Switch` runs for `value`."""

    value: int
    body: tuple[Op, ...]


@dataclass(frozen=True)
class Switch(_Block):
    """Run the case whose value `selector` has."""

    selector: Expr
    body: tuple[Case, ...]


@dataclass(frozen=True)
class Phase(_Block):
    """A named part of the schedule: no meaning of its own, but reports, profiles and readers go by it."""

    name: str
    body: tuple[Op, ...]


Op = Start | RemoteStart | Wait | Signal | Await | Barrier | Compute | SetScalar | Loop | When | Switch | Case | Phase

BLOCKS = (Loop, When, Switch, Case, Phase)
"""Operations with a body. A `Case` stands only in a `Switch`, which has nothing else in it."""

Kind = TypeVar("Kind", bound=Op)


@dataclass(frozen=True)
class Program:
    """What one device executes, operation by operation; all `devices` execute the same."""

    name: str
    pools: tuple[Pool, ...]
    buffers: tuple[Buffer, ...]
    arrays: tuple[Array, ...]
    scalars: tuple[Scalars, ...]
    semaphores: tuple[Semaphore, ...]
    body: tuple[Op, ...]
    devices: int = 1
    """Each runs the program with its own `rank` in 0..devices-1, on memory and semaphores of its own."""
    attributes: tuple[tuple[str, Attribute], ...] = ()
    """Facts for readers of the program and the emitted header, such as the model, the target and the policy."""

    @cached_property
    def size(self) -> int:
        """Operations in it at any depth."""
        return sum(map(size, self.body))

    def buffer(self, name: str) -> Buffer:
        """Of a name that is declared."""
        return next(buffer for buffer in self.buffers if buffer.name == name)

    def array(self, name: str) -> Array:
        """Of a name that is declared."""
        return next(array for array in self.arrays if array.name == name)


def scalars_set(op: Op) -> tuple[str, ...]:
    """The SMEM arrays that the operation, less its body, sets elements of."""
    match op:
        case SetScalar(array):
            return (array,)
        case Compute():
            return tuple(array for _, array in op.sets)
        case _:
            return ()


def walk(ops: tuple[Op, ...]) -> Iterator[Op]:
    """Every operation, outermost first, in program order."""
    for op in ops:
        yield op
        if isinstance(op, BLOCKS):
            yield from walk(op.body)


def size(op: Op) -> int:
    """How many operations `walk((op,))` has."""
    return op.size if isinstance(op, BLOCKS) else 1


def numbered(ops: tuple[Kind, ...], first: int = 0) -> Iterator[tuple[int, Kind]]:
    """The operations of one body with their numbers in the order of `walk`, where the first has the number `first`."""
    for op in ops:
        yield first, op
        first += size(op)

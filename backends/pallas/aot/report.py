"""What the TPU compiler made of a kernel."""

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

POOL_ROW = 512  # bytes of a row of int32[rows, 128]

AllocationKind = Literal["scratch", "internal", "window", "spill", "other"]
Report = TypeVar("Report")


@dataclass(frozen=True)
class Versions:
    jax: str
    jaxlib: str
    libtpu: str


@dataclass(frozen=True)
class Seconds:
    """Time of tracing with lowering, and of the TPU compiler: on the wall or, where that is less since the machine had
    other work, of the processors. Both are no less than what an idle machine takes."""

    lower: float
    compile: float


@dataclass(frozen=True)
class Allocation:
    """Memory the compiler gave the kernel; `bytes` is after the chip's padding.

    Scratch buffers have no names in the compiler: they come in the order of `scratch_shapes`, without the unused ones.
    """

    name: str
    space: str
    shape: str
    bytes: int
    kind: AllocationKind


@dataclass(frozen=True)
class Cycles:
    """Bundles of the schedule, each loop body once; `empty` are the stalls. No transfer or semaphore wait is in it."""

    total: int
    empty: int


@dataclass(frozen=True)
class Transfer:
    """A start or a wait in the scheduled bundles.

    `line` is the line of the kernel file, 0 where the compiler made the transfer itself (a window). `bytes` is None if
    the size is only known when the kernel runs. `direction` is empty for a wait.
    """

    bundle: int
    line: int
    kind: Literal["start", "wait"]
    direction: str
    bytes: int | None
    predicated: bool

    @property
    def rows(self) -> float | None:
        """Size in pool rows of 512 bytes."""
        return None if self.bytes is None else self.bytes / POOL_ROW


@dataclass(frozen=True)
class Loop:
    """A loop of the program given to the scheduler; `start`, `step`, `limit` are None if known only when it runs."""

    line: int
    start: int | None
    step: int | None
    limit: int | None


@dataclass(frozen=True)
class Branch:
    """A branch in the bundles: backward ones (`target <= bundle`) close loops, forward ones skip a `when`."""

    bundle: int
    target: int
    line: int


@dataclass(frozen=True)
class Copy:
    """A copy that XLA makes beside the kernel, before or after it, in every step."""

    name: str
    bytes: int
    result: str


@dataclass(frozen=True)
class Operand:
    """An argument or result of the kernel, in the memory space XLA chose: hbm, vmem, or scalar for one word."""

    index: int
    shape: str
    space: str


@dataclass(frozen=True)
class CompileReport:
    """Bytes unless said; `line_cycles` maps a line of the kernel file to its bundles, 0 collects those of no line."""

    kernel: str
    topology: str
    devices_used: int
    versions: Versions
    seconds: Seconds
    code_bytes: int
    temp_bytes: int
    alias_bytes: int
    argument_bytes: int
    output_bytes: int
    copies: tuple[Copy, ...]
    allocations: tuple[Allocation, ...] = ()
    operands: tuple[Operand, ...] = ()
    cycles: Cycles | None = None
    transfers: tuple[Transfer, ...] = ()
    loops: tuple[Loop, ...] = ()
    branches: tuple[Branch, ...] = ()
    line_cycles: dict[int, int] = dataclasses.field(default_factory=dict)

    def vmem_bytes(self, *kinds: AllocationKind) -> int:
        """VMEM of allocations of the given kinds, of all kinds if none is given."""
        chosen = (a for a in self.allocations if a.space == "vmem" and (not kinds or a.kind in kinds))
        return sum(allocation.bytes for allocation in chosen)

    def copies_of(self, at_least: int = 2**20) -> tuple[Copy, ...]:
        """Copies beside the kernel of at least so many bytes: each costs its bytes twice in every step."""
        return tuple(copy for copy in self.copies if copy.bytes >= at_least)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CompileReport":
        return _read(cls, data)


def _read(kind: type[Report], data: dict[str, Any]) -> Report:
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in data.items()})


def _value(hint: Any, value: Any) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not types.NoneType)
    if value is None:
        return None
    if dataclasses.is_dataclass(hint):
        return _read(typing.cast(type, hint), value)
    if typing.get_origin(hint) is tuple:
        return tuple(_value(typing.get_args(hint)[0], item) for item in value)
    if typing.get_origin(hint) is dict:
        return {int(line): count for line, count in value.items()}
    return value

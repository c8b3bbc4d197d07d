"""What a step is asked: rows, sequences, tokens in the cache; and whether the published placement can hold it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from schedc.errors import UserError
from schedc.ir.program import ROW_BYTES, Program
from schedc.published.form import MIB, PublishedSchedule
from schedc.target.target import Target

GIB = 2**30


@dataclass(frozen=True)
class Demand:
    """`rows` of one step: one each of as many sequences, or (`verify`) consecutive tokens of one sequence."""

    rows: int = 1
    verify: bool = False
    context: int = 2048
    """Tokens that the cache is made for."""
    at: int | None = None
    """Tokens in the cache when the step begins; the middle of the context if it is not given."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.context < 1:
            raise UserError(f"{self.rows} rows of {self.context} tokens: both must be at least 1")
        if not 0 <= self.position < self.context:
            raise UserError(f"position {self.position} is outside of the context of {self.context} tokens")

    @property
    def sequences(self) -> int:
        return 1 if self.verify else self.rows

    @property
    def position(self) -> int:
        return self.context // 2 if self.at is None else self.at

    @property
    def name(self) -> str:
        return f"{self.rows} verify rows" if self.verify else f"batch {self.rows}"

    def tiles(self, tokens: int) -> int:
        """Tiles of so many tokens that hold the cache at the position, the new token with it."""
        return ceil((self.position + 1) / tokens)

    def scale(self, schedule: PublishedSchedule) -> float:
        """What cycles at one row are multiplied by."""
        scale = schedule.row_scale
        return 1.0 + (scale.factor - 1.0) * (self.rows - 1) / (scale.rows - 1)

    def vmem_mib(self, schedule: PublishedSchedule) -> float:
        """What the publisher's compiler reports, in a line between its two reports."""
        vmem = schedule.vmem
        return vmem.mib + (vmem.mib_at_rows - vmem.mib) * (self.rows - 1) / (vmem.rows - 1)


def cache_bytes(schedule: PublishedSchedule, demand: Demand) -> dict[str, int]:
    """Bytes of caches and states in the HBM of one device."""
    found = {}
    for name, stream in schedule.streams.items():
        if stream.tokens is not None:
            tiles = ceil(demand.context / stream.tokens) * demand.sequences
            found[name] = round(stream.mib * MIB) * tiles * _layers(schedule, name)
    for name, tensor in schedule.tensors.items():
        if tensor.role == "state":
            times = demand.sequences if tensor.per == "sequence" else 1
            found[name] = round(tensor.mib * MIB) * times * _layers(schedule, name)
    return found


def _layers(schedule: PublishedSchedule, name: str) -> int:
    return len(schedule.layers_of(name))


def require_hbm(schedule: PublishedSchedule, demand: Demand, target: Target) -> None:
    """Raises UserError if weights and caches are more than a device has."""
    caches, most = cache_bytes(schedule, demand), target.capability.hbm_usable_bytes / GIB
    weights, total = schedule.held.weights_gib, sum(caches.values()) / GIB
    if weights + total <= most:
        return
    largest = max(caches, key=lambda name: caches[name])
    fits = int(demand.context * max(0.0, most - weights) / total)
    raise UserError(
        f"{schedule.name}: the published placement cannot hold {demand.sequences} sequences of {demand.context:,} "
        f"tokens: {total:.1f} GiB of caches (of these {largest} {caches[largest] / GIB:.1f}) beside {weights:.1f} GiB "
        f"of weights, a device has {most:.1f} GiB; up to {fits:,} tokens a sequence fit"
    )


def require_vmem(program: Program, target: Target) -> None:
    """Raises UserError if the regions and the boxes of the exchanges are more than a device has."""
    rows, most = sum(pool.rows for pool in program.pools), target.capability.vmem_usable_bytes
    if rows * ROW_BYTES > most:
        largest = sorted(program.buffers, key=lambda buffer: -buffer.rows)[:3]
        raise UserError(
            f"{program.name}: regions and boxes of exchanges take {rows * ROW_BYTES / MIB:.2f} MiB of VMEM, a device "
            f"has {most / MIB:.2f}; largest: "
            + ", ".join(f"{buffer.name} {buffer.rows * ROW_BYTES / MIB:.2f}" for buffer in largest)
        )

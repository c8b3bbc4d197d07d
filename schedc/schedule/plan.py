"""What a policy is asked, and what it answers.

A policy is a function `policy(problem: Problem, **settings) -> Plan`. The plan says how the
streamed weights are cut into tiles, which ring of slots each goes through and how many tiles
ahead of their use they are started, and at which phase the other transfers are issued. The
assembly of the program, the allocation and the proof are the same for every plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from schedc.lower.graph import Order, SumCut


@dataclass(frozen=True)
class StreamInfo:
    """A streamed weight: `units` pieces of `unit_rows` rows (of 512 bytes) a trip; a tile is some whole units."""

    name: str
    unit_rows: int
    units: int

    @property
    def rows(self) -> int:
        return self.unit_rows * self.units


@dataclass(frozen=True)
class PhaseInfo:
    """A phase in program order, the stream it consumes tile by tile, the vectors it reads.

    `each`: the selection for whose members it is repeated.
    """

    name: str
    stream: str | None = None
    vectors: str | None = None
    each: str | None = None


@dataclass(frozen=True)
class SegmentInfo:
    """`phases`, `trips` times over."""

    name: str
    trips: int
    phases: tuple[PhaseInfo, ...]


@dataclass(frozen=True)
class PrefetchInfo:
    """Transfers outside the streams, issued at the start of one phase from `earliest` to `latest`."""

    name: str
    earliest: str
    latest: str


@dataclass(frozen=True)
class SelectionInfo:
    """A choice that is made while the step runs: at most `most` of `members` are taken, each with its own matrices.

    Its transfers go through rings of their own. The first are issued at a phase from `earliest` on, which is a
    prefetch of the selection's name.
    """

    name: str
    members: int
    most: int
    earliest: str


@dataclass(frozen=True)
class Problem:
    """What there is to schedule. `capacity_rows` of VMEM are for everything; `kv_rows(tokens)` is what the
    cache's buffers take at that tile size, `kv_tokens` the tile sizes that are possible, largest first."""

    segments: tuple[SegmentInfo, ...]
    streams: tuple[StreamInfo, ...]
    prefetches: tuple[PrefetchInfo, ...]
    capacity_rows: int
    kv_tokens: tuple[int, ...]
    kv_rows: Callable[[int], int]
    selections: tuple[SelectionInfo, ...] = ()

    def matrices(self) -> tuple[StreamInfo, ...]:
        """The streams that phases consume tile by tile, those of chosen members aside."""
        return self._named({phase.stream for phase in self._phases() if phase.each is None})

    def vectors(self) -> tuple[StreamInfo, ...]:
        """The streams that are read whole, by several phases, those of chosen members aside."""
        consumed = {phase.stream for phase in self._phases()}
        chosen = {phase.vectors for phase in self._phases() if phase.each is not None}
        return tuple(stream for stream in self.streams if stream.name not in consumed | chosen)

    def chosen_matrices(self) -> tuple[StreamInfo, ...]:
        """As `matrices`, of chosen members."""
        return self._named({phase.stream for phase in self._phases() if phase.each is not None})

    def chosen_vectors(self) -> tuple[StreamInfo, ...]:
        """As `vectors`, of chosen members."""
        return self._named({phase.vectors for phase in self._phases() if phase.each is not None})

    def _phases(self) -> tuple[PhaseInfo, ...]:
        return tuple(phase for segment in self.segments for phase in segment.phases)

    def _named(self, names: set[str | None]) -> tuple[StreamInfo, ...]:
        return tuple(stream for stream in self.streams if stream.name in names)


@dataclass(frozen=True)
class Ring:
    """`slots` buffers that streams pass through in program order.

    `ahead` tiles are in flight or waiting before their use: 0 starts a tile right before its
    wait; a > 0 starts tile g + a as soon as tile g has been used, so a is at most `slots`.
    A ring of chosen members is empty before the first and after the last of them.
    """

    name: str
    streams: tuple[str, ...]
    slots: int
    ahead: int

    def __post_init__(self) -> None:
        if not 0 <= self.ahead <= self.slots or self.slots < 1:
            raise ValueError(f"ring {self.name}: {self.ahead} tiles ahead do not fit {self.slots} slots")


@dataclass(frozen=True)
class Plan:
    """A schedule's free choices."""

    rings: tuple[Ring, ...]
    tile_units: Mapping[str, int]
    kv_tokens: int
    issue: Mapping[str, str] = field(default_factory=dict)
    """Prefetch → the phase at whose start it is issued; the latest if it is not named."""
    orders: Mapping[str, Order] = field(default_factory=dict)
    """Selection → the order in which its members are gone through; `found` if it is not named."""
    at_once: Mapping[str, int] = field(default_factory=dict)
    """Selection → how many of its members stand in one pass of the loop over them; one if it is not named."""
    sums: SumCut = "tiles"
    """Whether a partial output is sent tile by tile, as it is made, to be summed, or whole."""


Policy = Callable[..., Plan]

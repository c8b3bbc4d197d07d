"""What a policy is asked, and what it answers.

A policy is a function `policy(problem: Problem, **settings) -> Plan`. The plan says how the
streamed weights are cut into tiles, which ring of slots each goes through and how many tiles
ahead of their use they are started, in what order the phases stand, and at which of them the other
transfers are issued. The assembly of the program, the allocation and the proof are the same for
every plan. docs/policies.md says it at length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schedc.lower.collectives.communication import SumSite
from schedc.lower.graph import Grain, Order, SumCut
from schedc.spec.model import Half
from schedc.weights.layout import WordDtype

if TYPE_CHECKING:
    import networkx as nx

    from schedc.lower.step import StepLowering
    from schedc.target.target import Target


@dataclass(frozen=True)
class StreamInfo:
    """A streamed weight: `units` pieces of `unit_rows` rows (of 512 bytes) a trip; a tile is some whole units.

    `half`: the half of a layer it belongs to; None before and after the layers, and of the vectors of both halves.
    """

    name: str
    unit_rows: int
    units: int
    half: Half | None = None

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

    @property
    def order(self) -> tuple[str, ...]:
        """Its phases, and its selections as a whole, as they are lowered: what `Plan.order` permutes."""
        return tuple(phase.name for phase in self.phases if phase.each is None)


@dataclass(frozen=True)
class PrefetchInfo:
    """Transfers outside the streams, issued at the start of one phase from `earliest` to `latest`.

    `rows`: what they move, at most (of tiles of a cache: at the smallest size). 0 of a selection.
    """

    name: str
    earliest: str
    latest: str
    rows: int = 0


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
class TransferCost:
    """Of one transfer from HBM to VMEM: it takes the HBM `descriptor_ns` + rows · `row_ns`, and arrives `latency_ns`
    later."""

    row_ns: float = 0.0
    descriptor_ns: float = 0.0
    latency_ns: float = 0.0

    def ns(self, rows: int) -> float:
        return self.descriptor_ns + rows * self.row_ns


@dataclass(frozen=True)
class Problem:
    """What there is to schedule. `capacity_rows` of VMEM are for everything; `kv_rows(tokens, slots)` is what
    the cache's buffers take at that tile size, `kv_tokens` the tile sizes that are possible, largest first.

    What takes time to find out is found out when it is asked for.
    """

    segments: tuple[SegmentInfo, ...]
    streams: tuple[StreamInfo, ...]
    prefetches: tuple[PrefetchInfo, ...]
    capacity_rows: int
    kv_tokens: tuple[int, ...]
    kv_rows: Callable[[int, int], int]
    selections: tuple[SelectionInfo, ...] = ()
    sites: Mapping[SumSite, tuple[str, ...]] = field(default_factory=dict)
    """Where devices sum what each has a part of → the algorithms that can do it there."""
    depends: Mapping[str, nx.DiGraph] = field(default_factory=dict)
    """Segment → which phases must stay behind which (schedc/schedule/depends.py)."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Phase → ns of the core in one trip: for all its tiles, of a selection's phases for all members that are expected;
    waits aside."""
    stalls: Mapping[str, float] = field(default_factory=dict)
    """Phase → ns of one trip in which it is blocked, under the default policy: of a phase that waits for peers, about
    what the exchange takes beside the work that is between."""
    transfer: TransferCost = field(default_factory=TransferCost)
    fits: Callable[[Plan], bool] = lambda plan: True
    """Whether VMEM holds what a plan asks for."""
    evaluate: Callable[[Plan], float] | None = None
    """The predicted time of a step of a plan, ns, proven or not; inf if it does not fit, or waits for ever. None where
    nothing can be predicted. Raises UserError for a plan that cannot be built."""
    lowering: StepLowering | None = None
    """What it is the problem of, and `target`: for policies that simulate by themselves."""
    target: Target | None = None
    at_sites: Callable[[Mapping[str, str], Mapping[str, WordDtype]], Problem] | None = None
    """The problem with other collectives and wires, as in `Plan`: some change the phases."""

    def at(self, plan: Plan) -> Problem:
        """The problem that a plan with collectives and wires of its own answers."""
        changed = bool(plan.collectives or plan.wires)
        return self.at_sites(plan.collectives, plan.wires) if changed and self.at_sites is not None else self

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

    `begin`: the phase at whose start the first `ahead` tiles are started; None: before all phases. In a segment of
    several trips that is in the first of them if the segment uses the ring, else in the last.
    """

    name: str
    streams: tuple[str, ...]
    slots: int
    ahead: int
    begin: str | None = None

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
    collectives: Mapping[str, str] = field(default_factory=dict)
    """Site of a sum over devices → its algorithm, one of `Problem.sites`; as the step was asked for if not named. What
    `latent` names changes the phases around it: an `order` is of those that there are then."""
    wires: Mapping[str, WordDtype] = field(default_factory=dict)
    """Site of a sum over devices → the format of what they send."""
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Segment → its phases in another order: `SegmentInfo.order` permuted, as `Problem.depends` allows."""
    deferred: Mapping[str, str] = field(default_factory=dict)
    """Phase → a later one of the same trip: the tiles that would be started as those of the phase have been used are
    started at the start of the later phase, behind what `issue` has there. In the order of the ring."""
    kv_slots: int = 2
    """Buffers for the older tiles of a sequence's cache: one less are on their way while one is used."""

    @property
    def grain(self) -> Grain:
        """What of it shapes the step graph."""
        return Grain(self.tile_units, self.kv_tokens, self.orders, self.sums, self.kv_slots)


Policy = Callable[..., Plan]

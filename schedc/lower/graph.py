"""The step graph: what a decode step computes, phase by phase, and what it streams from HBM.

A model is a row of segments (before the layers, each run of layers, after them). A segment is
a list of phases repeated `trips` times. A phase reads and writes VMEM buffers and may consume
one streamed weight tile by tile. Where the transfers are issued is not said here: that is the
schedule's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol

from schedc.ir.expr import Const, Expr
from schedc.ir.program import Array, Buffer, Op, Region, Scalars, Semaphore
from schedc.lower.collectives.communication import Communication
from schedc.lower.collectives.group import Topology
from schedc.lower.values import Value
from schedc.placement.rules import PlacementRules
from schedc.spec.storage import Dtype
from schedc.weights.formats import FORMATS, cut_at
from schedc.weights.layout import Columns, Inputs, Layout, Members, PanelMatrix, VectorItem, Vectors

LANES = 128
PER_WORD = {"bf16": 2, "f32": 1}
"""Elements of a 32-bit word."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, multiple: int) -> int:
    return ceil_div(a, multiple) * multiple


RowsAre = Literal["sequences", "tokens"]
"""What the rows of a step are: sequences that know nothing of each other, or consecutive tokens of one sequence."""


@dataclass(frozen=True)
class StepShape:
    """The size of a step: `rows` sequences of up to `context` tokens; `logits`: write them out beside the ids.

    It runs on `devices` devices, which hold what `placement` says and talk as `communication` says. `forms` are
    (format, form of its products) that are asked for instead of the fastest.
    """

    rows: int
    context: int
    logits: bool = False
    devices: int = 1
    placement: PlacementRules = field(default_factory=PlacementRules)
    communication: Communication = field(default_factory=Communication)
    pages: int = 0
    """Of a paged cache on a device; 0: as many as all sequences need together when they are full."""
    forms: tuple[tuple[str, str], ...] = ()
    rows_are: RowsAre = "sequences"
    taps: tuple[int, ...] = ()
    """Layers, from 0 and in their order, after which the residual stream is written out."""

    def sequence_pages(self, page_tokens: int, sharing: int = 1) -> int:
        """Pages of a full sequence on a device, one of `sharing` that have its tiles in turn."""
        return ceil_div(ceil_div(self.context, page_tokens), sharing)

    def page_count(self, page_tokens: int, sharing: int = 1) -> int:
        return self.pages or self.sequences * self.sequence_pages(page_tokens, sharing)

    @property
    def sequences(self) -> int:
        return self.rows if self.rows_are == "sequences" else 1

    @property
    def kept_states(self) -> int:
        """States of a layer that keeps one: of every sequence, or of one before a step and after each of its rows."""
        return self.rows if self.rows_are == "sequences" else self.rows + 1

    @property
    def sequence_rows(self) -> int:
        """Rows of one sequence."""
        return self.rows // self.sequences

    @property
    def padded_sequences(self) -> int:
        """Of what every row has a part by itself, that of the padded rows too."""
        return self.padded_rows if self.rows_are == "sequences" else 1

    @property
    def padded_rows(self) -> int:
        """Rows of f32 activations: whole groups of 8 sublanes."""
        return round_up(self.rows, 8)


def shape_to_dict(shape: StepShape) -> dict[str, Any]:
    """Plain data, for a manifest or another process."""
    return asdict(shape) | {"placement": shape.placement.model_dump(mode="json")}


def shape_from_dict(data: Mapping[str, Any]) -> StepShape:
    communication = {**data["communication"], "topology": Topology(**data["communication"]["topology"])}
    communication |= {sites: tuple(map(tuple, communication[sites])) for sites in ("collectives", "wires")}
    placement = PlacementRules.model_validate(data["placement"])
    forms = tuple((stored, form) for stored, form in data["forms"])
    parts = {"placement": placement, "communication": Communication(**communication), "forms": forms}
    parts["taps"] = tuple(data["taps"])
    return StepShape(**{**data, **parts})


class Stream(Protocol):
    """A weight that is read from HBM once a trip: `units` pieces of `unit_rows` rows; a tile is some whole units."""

    @property
    def name(self) -> str: ...
    @property
    def unit_rows(self) -> int: ...
    @property
    def units(self) -> int: ...
    @property
    def trips(self) -> int: ...
    def layout(self, tile_units: int) -> Layout: ...


@dataclass(frozen=True)
class Matrix:
    """The right side of a dot `[depth, columns]`, one matrix a layer in `layers` (none: one matrix of the model).

    `format` is what it is stored in, `dtype` what its dots are computed in: that of their left side. `inputs` says
    which rows it has of the weights, where it does not have all. `members`: one matrix of each.
    """

    name: str
    format: str
    dtype: Dtype
    depth: int
    columns: tuple[Columns, ...]
    layers: tuple[int, ...] = ()
    inputs: tuple[Inputs, ...] = ()
    members: tuple[Members, ...] = ()

    @property
    def units(self) -> int:
        """Panels of 128 columns."""
        return ceil_div(sum(block.width for block in self.columns), LANES)

    @property
    def unit_rows(self) -> int:
        return FORMATS[self.stored].panel_rows(self.depth)

    @property
    def stored(self) -> str:
        """The format, its groups cut where the device's inputs are."""
        places = (place for block in self.inputs for place in (block.start, block.step, block.width))
        return cut_at(self.format, places, self.name)

    @property
    def trips(self) -> int:
        return max(1, len(self.layers))

    def layout(self, tile_units: int) -> PanelMatrix:
        tiles = ceil_div(self.units, tile_units)
        tiling = tiles, tile_units
        return PanelMatrix(
            self.name, self.stored, self.layers, self.depth, *tiling, self.columns, self.inputs, self.members
        )


@dataclass(frozen=True)
class VectorBlock:
    """The small f32 vectors of a layer, or of each of its `members` (norms, biases), moved together."""

    name: str
    items: tuple[VectorItem, ...]
    layers: tuple[int, ...] = ()
    members: tuple[Members, ...] = ()

    @property
    def units(self) -> int:
        return 1

    @property
    def unit_rows(self) -> int:
        return self.layout(1).layer_rows

    @property
    def trips(self) -> int:
        return max(1, len(self.layers))

    def offset(self, weight: str) -> tuple[int, int]:
        """First row and number of rows of one vector."""
        index = [item.weight for item in self.items].index(weight)
        return self.layout(1).offsets[index], self.items[index].rows

    def layout(self, tile_units: int) -> Vectors:
        return Vectors(self.name, self.layers, self.items, self.members)


SumCut = Literal["tiles", "whole"]

Order = Literal["found", "number"]
"""Of the members of a selection: as they are found (the choices of the first row first), or by their number."""


@dataclass(frozen=True)
class Grain:
    """What of the schedule shapes the graph."""

    tile_units: Mapping[str, int]
    """By stream, the units of a tile."""
    kv_tokens: int
    """Tokens of a tile of the KV cache."""
    orders: Mapping[str, Order] = field(default_factory=dict)
    """By selection, the order in which its members are gone through: as they are found, if it is not named."""
    sums: SumCut = "tiles"
    """Whether the sum of a partial output is sent tile by tile as it is made, or whole."""
    kv_slots: int = 2
    """Buffers for older tiles of a sequence's cache: one less are on their way while one is used."""

    def tiles(self, stream: Stream) -> int:
        return ceil_div(stream.units, self.tile_units[stream.name])

    def tile_rows(self, stream: Stream) -> int:
        return self.tile_units[stream.name] * stream.unit_rows


@dataclass(frozen=True)
class Site:
    """Where a phase finds what it streams: the slot of the current tile, the tile's number, the layer's vectors.

    `member`: which one of a selection it is at.
    """

    trip: Expr = field(default_factory=lambda: Const(0))
    tile: Expr = field(default_factory=lambda: Const(0))
    weight: Region | None = None
    vectors: Region | None = None
    vector_block: VectorBlock | None = None
    member: Expr | None = None

    def vector(self, weight: str) -> Region:
        assert self.vectors is not None and self.vector_block is not None
        row, rows = self.vector_block.offset(weight)
        return Region(self.vectors.storage, rows, Const(row), self.vectors.slot)


@dataclass(frozen=True)
class Phase:
    """`ops(site)` once, or once for every tile of `stream`."""

    name: str
    ops: Callable[[Site], tuple[Op, ...]]
    stream: str | None = None
    vectors: str | None = None
    fills: str | None = None
    """The buffer that its tiles fill one after the other, in rows of equal number."""
    values: tuple[Value, ...] = ()
    """What it leaves in buffers, by the reference's names; empty if the reference has nothing like it."""
    layers: tuple[int, ...] = ()
    """The layers that it is a part of, one a trip."""


@dataclass(frozen=True)
class Selection:
    """Members that are chosen while the step runs, such as experts: `ids[i]` in SMEM for i < `count[0]` <= `most`.

    `known`: from the start of that phase of the segment on. Each member has matrices of its own in its streams, of
    `members` that this device holds.
    """

    ids: str
    count: str
    members: int
    most: int
    known: str


@dataclass(frozen=True)
class Each:
    """`phases` for every chosen member, with the loop counter `counter`. Their streams begin and end with the loop."""

    name: str
    counter: str
    selection: Selection
    phases: tuple[Phase, ...]


def phases_in(phase: Phase | Each) -> tuple[Phase, ...]:
    """A phase itself; of a selection, those that its members repeat."""
    return phase.phases if isinstance(phase, Each) else (phase,)


@dataclass(frozen=True)
class Prefetch:
    """Transfers that are not streams: `ops(trip)`, issued at the start of a phase from `earliest` to `latest`."""

    name: str
    ops: Callable[[Expr], tuple[Op, ...]]
    earliest: str
    latest: str


@dataclass(frozen=True)
class Segment:
    """`phases`, `trips` times over, with the loop counter `counter`."""

    name: str
    counter: str
    trips: int
    phases: tuple[Phase | Each, ...]
    prefetches: tuple[Prefetch, ...] = ()

    def consumed(self) -> list[str]:
        """The streams of the phases of its own, in the order in which their use ends."""
        return consumed(tuple(phase for phase in self.phases if isinstance(phase, Phase)))

    def selections(self) -> tuple[Each, ...]:
        return tuple(phase for phase in self.phases if isinstance(phase, Each))


def consumed(phases: tuple[Phase, ...]) -> list[str]:
    """The streams of phases in the order in which their use ends."""
    last: dict[str, int] = {}
    for place, phase in enumerate(phases):
        for name in (phase.stream, phase.vectors):
            if name is not None:
                last[name] = place
    return sorted(last, key=lambda name: last[name])


@dataclass(frozen=True)
class Declarations:
    """Storage a part of the model needs."""

    buffers: tuple[Buffer, ...] = ()
    arrays: tuple[Array, ...] = ()
    scalars: tuple[Scalars, ...] = ()
    semaphores: tuple[Semaphore, ...] = ()
    layouts: tuple[Layout, ...] = ()
    cleared: tuple[Region, ...] = ()
    """Zeros at the beginning, before the devices meet."""

    def once(self) -> Declarations:
        """What several parts declare alike, such as storage that layers share, declared once."""
        return Declarations(*(tuple(dict.fromkeys(getattr(self, field.name))) for field in fields(self)))

    def __add__(self, other: Declarations) -> Declarations:
        return Declarations(
            self.buffers + other.buffers,
            self.arrays + other.arrays,
            self.scalars + other.scalars,
            self.semaphores + other.semaphores,
            self.layouts + other.layouts,
            self.cleared + other.cleared,
        )


@dataclass(frozen=True)
class StepGraph:
    """A decode step before it is decided where transfers are issued: phases in order, what is streamed, storage."""

    name: str
    shape: StepShape
    grain: Grain
    streams: tuple[Stream, ...]
    segments: tuple[Segment, ...]
    declarations: Declarations

    def selections(self) -> tuple[Each, ...]:
        return tuple(each for segment in self.segments for each in segment.selections())

    def stream(self, name: str) -> Stream:
        return next(stream for stream in self.streams if stream.name == name)

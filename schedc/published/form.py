"""The form of a published schedule: what somebody's kernel does in which order, every number with its source.

Sizes are of one device, in MiB of 2^20 bytes; cycles are issue cycles for one row. A layer is a list of parts, a part a
list of steps in the order of the kernel. A number's `source` says where it is published, or `derived:` from what, or
`assumed:` and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from schedc.ir.program import ROW_BYTES
from schedc.spec.base import Part, Problem

MIB = 2**20
Size = Annotated[float, Field(gt=0)]
Cycles = Annotated[float, Field(ge=0)]
Names = Annotated[tuple[str, ...], Field(strict=False)]
"""YAML has lists where we keep tuples."""


def rows_of(size_bytes: float) -> int:
    """Rows of 512 bytes, whole tiles of eight."""
    return -(-round(size_bytes) // (8 * ROW_BYTES)) * 8


class Sourced(Part):
    source: str = Field(min_length=3)


class Region(Sourced):
    """A part of VMEM into which tensors are laid, at offsets that may overlap: their order keeps them apart.

    `per` sequence: as often as there are sequences, as all that is laid into it.
    """

    mib: Size
    per: Literal["layer", "sequence"] = "layer"


class Tensor(Sourced):
    """What is transferred as one: `mib` from HBM into `region` at `at_mib`, in `descriptors` transfers.

    `tiles` of equal size are awaited one by one. `per` sequence: as often as there are sequences. A `state` is written
    back by a `store`.
    """

    mib: Size
    region: str
    at_mib: float = Field(default=0.0, ge=0)
    descriptors: int = Field(default=1, ge=1)
    tiles: int = Field(default=1, ge=1)
    per: Literal["layer", "sequence"] = "layer"
    role: Literal["weight", "state"] = "weight"


class Stream(Sourced):
    """Tiles that pass through `slots` in `region`: a cache by its tokens, or a matrix too large for VMEM.

    A cache has a tile every `tokens` tokens of the position and of every sequence, a matrix `tiles`. Each takes
    `cycles` at so many rows.
    """

    mib: Size
    region: str
    at_mib: float = Field(default=0.0, ge=0)
    slots: int = Field(ge=1)
    tokens: int | None = Field(default=None, ge=1)
    tiles: int | None = Field(default=None, ge=1)
    cycles: Mapping[str, Cycles] = Field(min_length=1)

    def problems(self) -> Iterator[Problem]:
        if (self.tokens is None) == (self.tiles is None):
            yield "tiles", "a stream has either tiles, or tokens a tile"
        if not all(key.isdigit() and int(key) > 0 for key in self.cycles):
            yield "cycles", "must be a number of cycles for each number of rows"


class Experts(Sourced):
    """Routed experts: `groups` of devices hold `of / groups` each; the slots lie in `region` one after the other."""

    of: int = Field(ge=1)
    top_k: int = Field(ge=1)
    groups: int = Field(ge=1)
    mib: Size
    descriptors: int = Field(default=1, ge=1)
    region: str
    at_mib: float = Field(default=0.0, ge=0)
    slots: int = Field(ge=1)
    at_once: int = Field(ge=1)
    ahead: int = Field(ge=1)
    """How many are started as winners appear. Member e + ahead follows when e has been gone through, or as soon as it
    has come if there is a slot for it then."""

    @property
    def members(self) -> int:
        """Of one device."""
        return self.of // self.groups

    def problems(self) -> Iterator[Problem]:
        if self.of % self.groups:
            yield "groups", f"{self.of} experts are not {self.groups} equal groups"
        if self.at_once > self.slots:
            yield "at_once", f"{self.at_once} at once do not fit {self.slots} slots"
        if self.at_once > self.ahead or self.ahead > self.slots:
            yield "ahead", f"must be from {self.at_once} (at_once) to {self.slots} (slots), not {self.ahead}"


class Exchange(Sourced):
    """Every device sends `bytes_per_row` to the devices whose rank differs by `stride` times 1 … `devices` - 1.

    Differs as exclusive or: stride 1 and 2 devices are pairs, stride 8 and 4 devices the same place in groups of 8.
    """

    bytes_per_row: int = Field(ge=1)
    stride: int = Field(ge=1)
    devices: int = Field(ge=2)

    def problems(self) -> Iterator[Problem]:
        if any(n & (n - 1) for n in (self.stride, self.devices)):
            yield "devices", "stride and devices must be powers of two"

    @property
    def masks(self) -> tuple[int, ...]:
        return tuple(index * self.stride for index in range(1, self.devices))


class Start(Part):
    """Start the transfers of this layer's tensors, of a stream the first tiles."""

    do: Literal["start"]
    tensors: Names


class StartNext(Part):
    """Start the transfers of those of the tensors that the next layer has."""

    do: Literal["start_next"]
    tensors: Names


class Phase(Sourced):
    """Wait for tensors and exchanges, compute, send. The results go out as soon as they are computed.

    `writes` are states that it makes without having read them.
    """

    do: Literal["phase"]
    name: str
    cycles: Cycles
    needs: Names = ()
    writes: Names = ()
    receives: Names = ()
    sends: Names = ()


class Through(Sourced):
    """A phase that goes through a stream tile by tile, one more in flight for every slot but one."""

    do: Literal["stream"]
    name: str
    stream: str


class Store(Part):
    """Write a state back."""

    do: Literal["store"]
    tensors: Names


class Settle(Part):
    """Wait until what was stored has left."""

    do: Literal["settle"]
    tensors: Names


class Choose(Sourced):
    """The choice of experts, `cycles` a winner; an own expert's transfer starts as soon as its winner is known.

    After winner number `send_after` it sends `sends`.
    """

    do: Literal["choose"]
    name: str
    cycles: Cycles
    sends: Names = ()
    send_after: int = Field(default=0, ge=0)


class Members(Sourced):
    """The chosen experts, `at_once` at a time, `cycles` each.

    When the last ones have come, the transfers of the next layer's tensors `then_next` are started.
    """

    do: Literal["members"]
    name: str
    cycles: Cycles
    then_next: Names = ()


Step = Annotated[Start | StartNext | Phase | Through | Store | Settle | Choose | Members, Field(discriminator="do")]
Steps = Annotated[tuple[Step, ...], Field(strict=False)]


EXPERTS = "experts"
"""The name that `uses` has for the chosen experts."""


def uses(step: Step) -> Names:
    """What a step reads: tensors, streams, experts."""
    match step:
        case Phase():
            return (*step.needs, *step.writes)
        case Through():
            return (step.stream,)
        case Members():
            return (EXPERTS,)
        case _:
            return ()


class Run(Part):
    repeat: int = Field(ge=1)
    pattern: Names


class RowScale(Sourced):
    """Cycles of every phase grow in a line from 1 at one row to `factor` at `rows`."""

    rows: int = Field(ge=2)
    factor: float = Field(ge=1)


class Held(Sourced):
    """Bytes of the HBM of one device beside the caches, by the publisher's own account."""

    weights_gib: Size


class Vmem(Sourced):
    """What the publisher's compiler reports, in MiB: at one row, at `rows`. Explicit regions may take no more."""

    mib: Size
    rows: int = Field(ge=2)
    mib_at_rows: Size


class TileCost(Sourced):
    """Issue cycles of every further tile of a tensor that is awaited in tiles: its start, wait and fence."""

    cycles: Cycles


class Total(Sourced):
    """Issue cycles of a step at one row and with `experts` a device, by the publisher's compiler."""

    cycles: Cycles
    experts: int = Field(ge=0)


class PublishedSchedule(Part):
    """`kinds` of layers are made of `parts`; the first `peeled` layers stand before the loop over the others."""

    name: str
    model: str
    """The spec of the model that comes with schedc."""
    title: str
    document: str
    target: str
    devices: int = Field(ge=1)
    peeled: int = Field(ge=0)
    layers: Annotated[tuple[Run, ...], Field(strict=False, min_length=1)]
    kinds: Mapping[str, Names]
    held: Held
    vmem: Vmem
    total: Total
    row_scale: RowScale
    tile_cost: TileCost
    regions: Mapping[str, Region]
    tensors: Mapping[str, Tensor]
    streams: Mapping[str, Stream]
    experts: Experts
    exchanges: Mapping[str, Exchange]
    before: Steps
    """Ahead of the first layer."""
    parts: Mapping[str, Steps]
    after: Steps
    """Behind the last layer."""

    @property
    def layer_kinds(self) -> Names:
        """The kind of every layer."""
        return tuple(kind for run in self.layers for _ in range(run.repeat) for kind in run.pattern)

    def users(self, name: str) -> Names:
        """The parts that use a tensor or a stream."""
        return tuple(part for part, steps in self.parts.items() if any(name in uses(step) for step in steps))

    def layers_of(self, name: str) -> tuple[int, ...]:
        """The layers that use a tensor, a stream or the experts."""
        users = self.users(name)
        return tuple(
            index for index, kind in enumerate(self.layer_kinds) if any(part in users for part in self.kinds[kind])
        )

    def steps(self) -> Iterator[tuple[str, Step]]:
        """(where, step) of the whole file."""
        for part, steps in (("before", self.before), *self.parts.items(), ("after", self.after)):
            where = part if part in ("before", "after") else f"parts.{part}"
            yield from ((f"{where}[{index}]", step) for index, step in enumerate(steps))

    def problems(self) -> Iterator[Problem]:
        yield from self._unknown_names()
        yield from self._sizes()

    def _unknown_names(self) -> Iterator[Problem]:
        for kind, parts in self.kinds.items():
            yield from ((f"kinds.{kind}", f"no part {part!r}") for part in parts if part not in self.parts)
        for index, run in enumerate(self.layers):
            yield from (
                (f"layers[{index}].pattern", f"no kind {kind!r}") for kind in run.pattern if kind not in self.kinds
            )
        for field, region in self._laid():
            if region not in self.regions:
                yield f"{field}.region", f"no region {region!r}"
        moved = {*self.tensors, *self.streams}
        for where, step in self.steps():
            known = {
                "tensors": moved,
                "needs": set(self.tensors),
                "writes": set(self.tensors),
                "sends": set(self.exchanges),
            }
            known |= {"receives": set(self.exchanges), "then_next": moved}
            for field, names in known.items():
                for name in getattr(step, field, ()):
                    if name not in names:
                        yield f"{where}.{field}", f"no such {field.rstrip('s')}: {name!r}"
            if isinstance(step, Through) and step.stream not in self.streams:
                yield f"{where}.stream", f"no stream {step.stream!r}"

    def _laid(self) -> Iterator[tuple[str, str]]:
        for name, tensor in self.tensors.items():
            yield f"tensors.{name}", tensor.region
        for name, stream in self.streams.items():
            yield f"streams.{name}", stream.region
        yield "experts", self.experts.region

    def _sizes(self) -> Iterator[Problem]:
        """What lies outside of its region; what is there for every sequence is looked at when their number is known."""
        ends = [(f"tensors.{n}", t.region, t.at_mib + t.mib) for n, t in self.tensors.items()]
        ends += [(f"streams.{n}", s.region, s.at_mib + s.mib * s.slots) for n, s in self.streams.items()]
        ends += [("experts", self.experts.region, self.experts.at_mib + self.experts.mib * self.experts.slots)]
        for field, region, end in ends:
            if region in self.regions and end > self.regions[region].mib + 1e-6:
                yield field, f"ends at {end:g} MiB of region {region}, which has {self.regions[region].mib:g}"
        for name, exchange in self.exchanges.items():
            if exchange.stride * exchange.devices > self.devices:
                yield f"exchanges.{name}.devices", f"reaches beyond the {self.devices} devices"

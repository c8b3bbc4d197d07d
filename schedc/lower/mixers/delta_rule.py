"""What mixers with a delta rule share: projections, the short convolution, the rule itself, the gated norm.

    operand → q | k | v | gate | decay | beta → convolution, state → norm(o) · gate → o

The states and the windows of the convolutions pass through VMEM beside it (`schedc/lower/states/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from schedc.ir.expr import Const, Counter, Expr, add, mul
from schedc.ir.program import Attribute, Buffer, Loop, Op, Region
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.graph import LANES, Declarations, Grain, Matrix, Phase, Prefetch, Site, StepShape, ceil_div, round_up
from schedc.lower.mixers.gqa import norm_attributes, norm_items, operands
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.states.choose import STATE_STREAMS
from schedc.lower.values import KEPT, Value, by_head, operand, operand_heads
from schedc.placement.heads import HeadSplit
from schedc.placement.split import Split
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.kda import Kda
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns, Inputs, VectorItem

HEADS_AT_ONCE = 24
"""Value heads that stand one after the other in one operation: more go in a loop over groups of them."""

SEQUENCES_AT_ONCE = 64
"""Heads of all sequences that stand one after the other in the kernel: more go in a loop over the sequences."""


@dataclass(frozen=True)
class Rule:
    """What tells one mixer with a delta rule from another. `split.query` are the value heads, `split.kv` the key heads.

    `decay_of`: whether every key decays by itself, or a head. `decay` are the attributes of its formula. What has a
    rank is projected in two steps: decay_a, decay_b; gate_a, gate_b.
    """

    split: HeadSplit
    decay_of: Literal["keys", "heads"]
    decay: Mapping[str, Attribute]
    activation: Literal["sigmoid", "silu"]
    decay_rank: int | None = None
    gate_rank: int | None = None


class DeltaRuleLowering:
    """Heads are those of a device; each has its key and its value in a panel of its own."""

    output_bias: str | None = None
    meaning = "attn.o"

    def __init__(
        self, mixer: Kda | GatedDelta, rule: Rule, spec: ModelSpec, shape: StepShape, place: Place, source: Region
    ) -> None:
        self.mixer, self.rule, self.spec, self.shape, self.place, self.source = mixer, rule, spec, shape, place, source
        self.dtype = spec.quantization.operand_dtype
        self.key_heads, self.value_heads = rule.split.kv.each, rule.split.query.each
        self.partial = rule.split.is_split
        self.output = place.named("attention_out")
        self.panels = 2 * self.key_heads + self.value_heads
        self.stride, self.head_stride = round_up(self.panels, 8), round_up(self.value_heads, 8)
        self.key_rows = round_up(mixer.key_dim, 8)
        self.state = STATE_STREAMS[shape.rows_are](
            self.value_heads * self.key_rows + (mixer.conv - 1) * self.stride,
            f"state_{_sizes(spec).index(_size(mixer))}",
            shape,
            place,
            shape.rows * self.value_heads <= SEQUENCES_AT_ONCE,
        )
        self.projections = self._projections()
        named, layers, decay = place.named, place.layers, spec.quantization.format("decay")
        stored = spec.quantization.format("attention")
        self.decay_b = Matrix(
            named("w_decay_b"), decay, self.dtype, rule.decay_rank or 0, self._by_head("decay_b", "key_dim"), layers
        )
        self.gate_b = Matrix(
            named("w_gate_b"), stored, self.dtype, rule.gate_rank or 0, self._by_head("gate_b", "value_dim"), layers
        )
        self.o = Matrix(
            named("w_o"),
            stored,
            self.dtype,
            self.value_heads * LANES,
            (Columns("attn.o", 0, spec.hidden),),
            layers,
            self._inputs(),
        )

    # Weights

    def _projections(self) -> tuple[tuple[Matrix, dict[str, int]], ...]:
        """What the operand is multiplied by: one matrix, or two if decays and betas have a format of their own.

        Each with its parts and their panels, in their order.
        """
        rule, heads = self.rule, self.rule.split.query
        wide = {
            "q": self._by_head("q", "key_dim"),
            "k": self._by_head("k", "key_dim"),
            "v": self._by_head("v", "value_dim"),
            "gate": self._by_head("gate", "value_dim"),
        }
        if rule.gate_rank is not None:
            wide["gate"] = (Columns("attn.gate_a", 0, rule.gate_rank, round_up(rule.gate_rank, LANES)),)
        lanes = round_up(heads.each, LANES)
        small = {"decay": (Columns("attn.decay", 0, heads.each, lanes, **heads.shard()),)}
        if rule.decay_rank is not None:
            small["decay"] = (Columns("attn.decay_a", 0, rule.decay_rank, round_up(rule.decay_rank, LANES)),)
        small["beta"] = (Columns("attn.beta", 0, heads.each, lanes, **heads.shard()),)
        stored, of_small = (self.spec.quantization.format(family) for family in ("attention", "decay"))
        if stored == of_small:
            return (self._projection("w_mixer", stored, wide | small),)
        return self._projection("w_mixer", stored, wide), self._projection("w_decay", of_small, small)

    def _projection(
        self, name: str, stored: str, parts: Mapping[str, tuple[Columns, ...]]
    ) -> tuple[Matrix, dict[str, int]]:
        columns = tuple(block for blocks in parts.values() for block in blocks)
        matrix = Matrix(self.place.named(name), stored, self.dtype, self.spec.hidden, columns, self.place.layers)
        return matrix, {part: sum(b.width for b in blocks) // LANES for part, blocks in parts.items()}

    def _split(self, weight: str) -> Split:
        return self.rule.split.kv if weight in ("q", "k") else self.rule.split.query

    def _by_head(self, weight: str, dim: Literal["key_dim", "value_dim"]) -> tuple[Columns, ...]:
        """The columns of a device's heads, each head padded to a panel."""
        size, split = getattr(self.mixer, dim), self._split(weight)
        shard = split.shard(size)
        if size == LANES:
            return (Columns(f"attn.{weight}", 0, split.each * size, **shard),)
        return tuple(Columns(f"attn.{weight}", head * size, size, LANES, **shard) for head in range(split.each))

    def _inputs(self) -> tuple[Inputs, ...]:
        """The rows of o: those of a device's heads, each padded to a panel."""
        size, split = self.mixer.value_dim, self.rule.split.query
        if size == LANES:
            return (Inputs(0, split.each * size, **split.shard(size)),) if self.partial else ()
        return tuple(Inputs(head * size, size, LANES, **split.shard(size)) for head in range(split.each))

    def matrices(self) -> tuple[Matrix, ...]:
        decay_b = () if self.rule.decay_rank is None else (self.decay_b,)
        gate_b = () if self.rule.gate_rank is None else (self.gate_b,)
        return (*(matrix for matrix, _ in self.projections), *decay_b, *gate_b, self.o)

    def vectors(self) -> tuple[VectorItem, ...]:
        return *self._gate_vectors(), *self._conv_vectors(), *self._norm_vectors()

    def _gate_vectors(self) -> tuple[VectorItem, ...]:
        heads = self.rule.split.query
        bias = VectorItem("attn.decay_bias", heads.each, of=heads.total, **heads.shard())
        if self.rule.decay_of == "keys":
            bias = self._channels("attn.decay_bias", heads, self.mixer.key_dim)
        return bias, VectorItem("attn.decay_scale", heads.each, of=heads.total, **heads.shard())

    def _conv_vectors(self) -> tuple[VectorItem, ...]:
        mixer, taps = self.mixer, self.mixer.conv
        dims = {"q": mixer.key_dim, "k": mixer.key_dim, "v": mixer.value_dim}
        return tuple(self._channels(f"attn.{part}_conv", self._split(part), dims[part], taps=taps) for part in dims)

    def _channels(self, weight: str, split: Split, size: int, taps: int = 0) -> VectorItem:
        """A vector of all channels of the heads, each head padded to a panel."""
        block = {} if size == LANES else {"block": size, "block_lanes": LANES}
        return VectorItem(weight, split.each * size, of=split.total * size, taps=taps, **block, **split.shard(size))

    def _norm_vectors(self) -> tuple[VectorItem, ...]:
        return norm_items(self.mixer.output_norm, "attn.output_norm", self.mixer.value_dim)

    # Storage

    def declarations(self, grain: Grain) -> Declarations:
        rows, named, words = self.shape.padded_rows, self.place.named, operand_words(self.shape.padded_rows, self.dtype)
        sequences, rule = self.shape.rows, self.rule
        buffers = [Buffer(_result(matrix), WORK, output_rows(matrix, grain, rows)) for matrix, _ in self.projections]
        for rank, name, matrix in (
            (rule.decay_rank, "decay", self.decay_b),
            (rule.gate_rank, "gate", self.gate_b),
        ):
            if rank is not None:
                buffers.append(Buffer(named(f"{name}_latent"), WORK, ceil_div(rank, LANES) * words))
                buffers.append(Buffer(_result(matrix), WORK, output_rows(matrix, grain, rows)))
        buffers += [
            Buffer(named("entered"), WORK, sequences * self.stride),
            Buffer(named("convolved"), WORK, sequences * self.stride),
            *(Buffer(named(name), WORK, sequences * self.head_stride) for name in ("decay", "beta", "read")),
            Buffer(named("attended"), WORK, self.value_heads * words),
            Buffer(self.output, WORK, output_rows(self.o, grain, rows)),
        ]
        return Declarations(tuple(buffers)) + self.state.declarations()

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return self.state.begin()

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return self.state.prefetches("delta")

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return self.state.end()

    # Phases

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows, named, rule = self.shape.padded_rows, self.place.named, self.rule
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        names = ("project", "project_decay")
        entering = [
            projection(named(name), matrix, self.source, _result(matrix), grain, rows)
            for name, (matrix, _) in zip(names, self.projections, strict=False)
        ]
        decay, gate = self._entered("decay"), self._entered("gate")
        if rule.decay_rank is not None:
            entering += self._second("decay", decay, self.decay_b, rule.decay_rank, grain, whole)
            decay = Region(_result(self.decay_b), self.value_heads * rows)
        if rule.gate_rank is not None:
            entering += self._second("gate", gate, self.gate_b, rule.gate_rank, grain, whole)
            gate = Region(_result(self.gate_b), self.value_heads * rows)
        vectors, size = named("vectors"), self.mixer.value_dim
        attended = operand_heads(
            "attn.attended", named("attended"), self.value_heads, size, rows, self.dtype, **self._shard("v", size)
        )
        return (
            *entering,
            Phase(
                named("gates"),
                lambda site: self._gates(site, decay, whole),
                vectors=vectors,
                values=self._gate_values(),
            ),
            Phase(named("delta"), lambda site: self._delta(site, whole), vectors=vectors, values=self._delta_values()),
            Phase(
                named("join"),
                lambda site: self._join(site, gate, whole),
                vectors=vectors if self._norm_vectors() else None,
                values=(attended,),
            ),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )

    def _entered(self, *parts: str) -> Region:
        """The columns of neighbouring parts of what entered."""
        rows = self.shape.padded_rows
        for matrix, panels in self.projections:
            if parts[0] in panels:
                first = sum(list(panels.values())[: list(panels).index(parts[0])])
                return Region(_result(matrix), sum(panels[part] for part in parts) * rows, Const(first * rows))
        raise KeyError(parts[0])

    def _second(
        self, name: str, entered: Region, matrix: Matrix, rank: int, grain: Grain, whole: dict[str, Region]
    ) -> tuple[Phase, ...]:
        """The second of two projections, of what has so many columns in between."""
        rows, named = self.shape.padded_rows, self.place.named
        latent = whole[named(f"{name}_latent")]

        def rounded(site: Site) -> tuple[Op, ...]:
            return (compute("as_operand", {"x": entered}, {"out": latent}, rows=rows, columns=rank, dtype=self.dtype),)

        value = operand(f"attn.{name}_a", latent.storage, rank, rows, self.dtype)
        return (
            Phase(named(f"{name}_latent"), rounded, values=(value,)),
            projection(named(f"{name}_b"), matrix, latent, _result(matrix), grain, rows),
        )

    def _gates(self, site: Site, decay: Region, whole: dict[str, Region]) -> tuple[Op, ...]:
        """What is projected, by sequence; how much each head keeps and changes."""
        named = self.place.named
        sizes: dict[str, Attribute] = {"rows": self.shape.padded_rows, "sequences": self.shape.rows}
        return (
            compute(
                "by_sequence",
                {"y": self._entered("q", "k", "v")},
                {"out": whole[named("entered")]},
                attributes=sizes,
                panels=self.panels,
                stride=self.stride,
            ),
            compute(
                "delta_gates",
                {"f": decay, "beta": self._entered("beta"), **operands(site, self._gate_vectors())},
                {"decay_out": whole[named("decay")], "beta_out": whole[named("beta")]},
                attributes={**sizes, **self.rule.decay},
                heads=self.value_heads,
                stride=self.head_stride,
                decay_of=self.rule.decay_of,
            ),
        )

    def _delta(self, site: Site, whole: dict[str, Region]) -> tuple[Op, ...]:
        return self.state.update(site.trip, lambda row, *states: self._token(site, row, *states))

    def _token(self, site: Site, row: Expr, state: Region, behind: Region | None) -> tuple[Op, ...]:
        """The convolution and the rule of one row. What is kept then is put `behind`, or where it was before."""
        named, mixer = self.place.named, self.mixer
        keep = {"keep": self.state.keeps(row)}
        heads = self.value_heads * self.key_rows
        sizes: dict[str, Attribute] = {"key_heads": self.key_heads, "value_heads": self.value_heads}

        def window(whole: Region) -> Region:
            return replace(whole, rows=whole.rows - heads, offset=add(whole.offset, heads))

        def read(name: str, region: Region) -> dict[str, Region]:
            return {} if behind is None else {name: region}

        def updated(name: str, region: Region) -> dict[str, Region]:
            return {name: region} if behind is None else {}

        def written(part: Callable[[Region], Region]) -> dict[str, Region]:
            return {} if behind is None else {"behind": part(behind)}

        def of(name: str, stride: int) -> Region:
            return Region(named(name), stride, mul(row, stride))

        convolved = of("convolved", self.stride)
        convolution = compute(
            "short_conv",
            {"x": of("entered", self.stride), **operands(site, self._conv_vectors()), **read("window", window(state))},
            {"out": convolved, **written(window)},
            updated("window", window(state)),
            keep,
            sizes,
            panels=self.panels,
            stride=self.stride,
            conv=mixer.conv,
            key_scale=mixer.key_dim**-0.5,
            eps=mixer.qk_eps,
        )
        groups = head_groups(self.key_heads, self.value_heads)
        in_group = self.head_stride if groups == 1 else self.value_heads // groups

        def rule(group: Expr) -> Op:
            def of_group(name: str) -> Region:
                return Region(named(name), in_group, add(mul(row, self.head_stride), mul(group, in_group)))

            def states(whole: Region) -> Region:
                size = heads // groups
                return replace(whole, rows=size, offset=add(whole.offset, mul(group, size)))

            return compute(
                "delta_rule",
                {
                    "vectors": convolved,
                    "decay": of_group("decay"),
                    "beta": of_group("beta"),
                    **read("state", states(state)),
                },
                {"out": of_group("read"), **written(states)},
                updated("state", states(state)),
                {**keep, "group": group},
                groups=groups,
                key_heads=self.key_heads // groups,
                value_heads=self.value_heads // groups,
                key_rows=self.key_rows,
                key_first=self.key_heads,
                value_first=2 * self.key_heads,
                decay_of=self.rule.decay_of,
            )

        if groups == 1:
            return convolution, rule(Const(0))
        counter = Counter(named("heads"))
        return convolution, Loop(counter.name, Const(groups), (rule(counter),))

    def _join(self, site: Site, gate: Region, whole: dict[str, Region]) -> tuple[Op, ...]:
        """The heads' outputs side by side, normalised and gated."""
        named, mixer = self.place.named, self.mixer
        return (
            compute(
                "delta_outputs",
                {"o": whole[named("read")], "gate": gate, **operands(site, self._norm_vectors())},
                {"out": whole[named("attended")]},
                attributes=norm_attributes(mixer.output_norm),
                rows=self.shape.padded_rows,
                sequences=self.shape.rows,
                heads=self.value_heads,
                stride=self.head_stride,
                value_dim=mixer.value_dim,
                activation=self.rule.activation,
                dtype=self.dtype,
            ),
        )

    # What results mean

    def _shard(self, weight: str, size: int) -> dict[str, int]:
        return self._split(weight).shard(size)

    def _channel_values(self, names: tuple[str, str, str], buffer: str) -> tuple[Value, ...]:
        """q, k and v of a sequence's channels, a head a row."""
        key, value = self.mixer.key_dim, self.mixer.value_dim
        parts = (
            ("q", self.key_heads, key, 0),
            ("k", self.key_heads, key, self.key_heads),
            ("v", self.value_heads, value, 2 * self.key_heads),
        )
        return tuple(
            Value(name, buffer, by_head(heads, size, 1, self.stride, 1, at, **self._shard(part, size)))
            for name, (part, heads, size, at) in zip(names, parts, strict=True)
        )

    def _of_heads(self, meaning: str, name: str, size: int) -> Value:
        """`size` numbers of every value head, a head a row."""
        pieces = by_head(self.value_heads, size, 1, self.head_stride, 1, **self._shard("v", size))
        return Value(meaning, self.place.named(name), pieces)

    def _gate_values(self) -> tuple[Value, ...]:
        entered = self._channel_values(("attn.q", "attn.k", "attn.v"), self.place.named("entered"))
        size = self.mixer.key_dim if self.rule.decay_of == "keys" else 1
        return (*entered, self._of_heads("attn.decays", "decay", size), self._of_heads("attn.betas", "beta", 1))

    def _delta_values(self) -> tuple[Value, ...]:
        names = ("attn.convolved_q", "attn.convolved_k", "attn.convolved_v")
        convolved = self._channel_values(names, self.place.named("convolved"))
        return (*convolved, self._of_heads("attn.read", "read", self.mixer.value_dim), KEPT)


def head_groups(key_heads: int, value_heads: int) -> int:
    """Groups that heads go in, at most HEADS_AT_ONCE a group: whole key heads, in whole groups of 8 sublanes.

    One if they do not come out so.
    """
    fits = (n for n in range(1, key_heads + 1) if value_heads <= n * HEADS_AT_ONCE and key_heads % (8 * n) == 0)
    return next(fits, 1) if value_heads > HEADS_AT_ONCE else 1


def _result(matrix: Matrix) -> str:
    """The buffer of what a matrix projects to."""
    return matrix.name.replace("w_", "projected_", 1)


def _size(mixer: Kda | GatedDelta) -> tuple[Any, ...]:
    """What the size of its state follows from."""
    heads = (mixer.heads, mixer.heads) if isinstance(mixer, Kda) else (mixer.key_heads, mixer.value_heads)
    return (*heads, mixer.key_dim, mixer.value_dim, mixer.conv)


def _sizes(spec: ModelSpec) -> list[tuple[Any, ...]]:
    """Every size of state in the model, in the order of the layers; the layers of one share their slots."""
    mixers = (at.block.mixer for at in spec.iter_layers())
    return list(dict.fromkeys(_size(mixer) for mixer in mixers if isinstance(mixer, Kda | GatedDelta)))

"""Mixture of experts: the router, the shared expert while the first weights arrive, a loop over what was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedc.ir.expr import Const, Element, Expr, Rank, add, floordiv, mod, mul
from schedc.ir.program import Attribute, Buffer, Op, Region, Scalars
from schedc.lower.feed_forwards.dense import DenseLowering, output_rows, projection
from schedc.lower.feed_forwards.entry import SplitEntry
from schedc.lower.feed_forwards.latent import LatentSpace, norm_vectors_of
from schedc.lower.graph import (
    LANES,
    Declarations,
    Each,
    Grain,
    Matrix,
    Phase,
    Prefetch,
    Selection,
    Site,
    StepShape,
    Stream,
    VectorBlock,
    ceil_div,
    round_up,
)
from schedc.lower.norms import norm_kind
from schedc.lower.parts import WORK, Place, compute
from schedc.lower.values import Piece, Value, operand, panels
from schedc.placement.experts import experts_of
from schedc.placement.widths import entry_split, shared_split
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns, Members, VectorItem


class MoeLowering:
    """Every device routes all rows and computes those of its own experts that any row has chosen."""

    def __init__(self, moe: Moe, spec: ModelSpec, shape: StepShape, place: Place, source: Region) -> None:
        self.moe, self.spec, self.shape, self.place, self.source = moe, spec, shape, place, source
        self.split = experts_of(moe, shape.devices, shape.placement)
        self.members = self.split.experts.each
        self.most = min(shape.rows * moe.top_k, self.members)
        self.inner = moe.input_width or spec.hidden
        gate = (Columns("mlp.shared_gate", 0, 1),) if moe.shared_gate else ()
        self.router = Matrix(
            place.named("w_router"),
            spec.quantization.format("router"),
            spec.quantization.operand_dtype,
            spec.hidden,
            (Columns("mlp.router", 0, moe.experts), *gate),
            place.layers,
        )
        members = self.held = Members(0, self.members, of=moe.experts, **self.split.experts.shard())
        self.shared: DenseLowering | None = None
        if moe.shared is not None:
            shared_place, width = replace(place, part="shared_"), shared_split(moe.shared.width, shape.devices)
            self.shared = DenseLowering(
                moe.shared, spec, shape, shared_place, source, weights="mlp.shared", family="shared", width=width
            )
        self.output = place.named("mlp_out") if self.shared is None else self.shared.output
        self.output_bias = None if self.shared is None else self.shared.output_bias
        self.partial, self.meaning = self.split.is_split, "mlp.out"
        self.latent: LatentSpace | None = None
        if moe.latent is not None:
            self.latent = LatentSpace(moe.latent, spec, shape, place, source, self.output)
            self.partial = self.partial and self.latent.fused is None
        self.entry = self._entry()
        self.total = Region(self.output, self._sum_rows(spec.hidden)) if self.latent is None else self.latent.total
        self.expert = DenseLowering(
            moe.expert,
            spec,
            shape,
            replace(place, part="expert_"),
            self._expert_source(),
            weights="mlp.experts.*",
            family="experts",
            width=self.split.width,
            depth=self.inner,
            members=(members,),
        )
        self.expert_vectors = VectorBlock(
            place.named("expert_vectors"), self._expert_vectors(), place.layers, (members,)
        )

    def _entry(self) -> SplitEntry | None:
        """Of several devices: the way into the latent space and, if it is stored alike and is all the router's matrix
        has, the router. An exchange of both takes as long as one of the first alone."""
        devices, formats = self.shape.devices, self.spec.quantization
        if self.latent is None or devices == 1:
            return None
        outputs = {"mlp.latent_in": (entry_split(self.latent.latent.width, devices), self.latent.entered)}
        if formats.format("router") == formats.format("dense") and not self.moe.shared_gate:
            columns = ceil_div(self.moe.experts, LANES) * self.shape.padded_rows
            logits = Region(self.place.named("router_logits"), columns)
            outputs["mlp.router"] = entry_split(self.moe.experts, devices), logits
        return SplitEntry(outputs, self.spec, self.shape, self.place, self.source, formats.format("dense"))

    @property
    def _routed_apart(self) -> bool:
        """Whether every device computes all logits by itself."""
        return self.entry is None or "mlp.router" not in self.entry.outputs

    def _expert_source(self) -> Region:
        """What the experts read: the layer's operand, that of the latent space, or what is weighed for each of them."""
        if self.latent is not None:
            return self.latent.operand
        return replace(self.source, storage=self.place.named("expert_in")) if self.moe.weigh_input else self.source

    def _sum_rows(self, columns: int) -> int:
        return ceil_div(columns, LANES) * self.shape.padded_rows

    def _expert_vectors(self) -> tuple[VectorItem, ...]:
        """Biases of the experts. Of devices that share an expert the first alone adds its output's."""
        shared_by = self.split.tensor_parallel
        return tuple(
            replace(item, of=item.length, step=item.length, every=1, ring=shared_by)
            if item.weight == self.expert.output_bias and shared_by > 1
            else item
            for item in self.expert.vectors()
        )

    def matrices(self) -> tuple[Stream, ...]:
        shared = self.shared.matrices() if self.shared else ()
        latent = self.latent.matrices() if self.latent else ()
        vectors = (self.expert_vectors,) if self.expert_vectors.items else ()
        entry = (self.entry.matrix,) if self.entry else ()
        router = (self.router,) if self._routed_apart else ()
        return (*entry, *router, *shared, *latent, *vectors, *self.expert.matrices())

    def vectors(self) -> tuple[VectorItem, ...]:
        moe = self.moe
        wanted = (("mlp.router_bias", moe.router.bias), ("mlp.selection_bias", moe.router.selection_bias))
        return (
            *(VectorItem(name, moe.experts) for name, present in wanted if present),
            *norm_vectors_of(moe.expert_norm, "mlp.expert_norm", self.inner),
            *(self.latent.vectors() if self.latent else ()),
            *(self.shared.vectors() if self.shared else ()),
        )

    def declarations(self, grain: Grain) -> Declarations:
        rows, named, moe = self.shape.padded_rows, self.place.named, self.moe
        buffers = {
            named("router_logits"): self._logits(grain).rows,
            named("choices"): self._choices.rows,
            named("expert_scale"): rows,
        }
        if moe.weigh_input:
            buffers[self.expert.source.storage] = self.expert.source.rows
        if self.shared is None:
            buffers[self.output] = self._sum_rows(self.spec.hidden)
        buffers |= {region.storage: region.rows for _, region in self._kept_vectors()}
        own = Declarations(
            buffers=tuple(Buffer(name, WORK, size) for name, size in buffers.items()),
            scalars=(
                Scalars(named("winner"), self.shape.rows * moe.top_k, -1, moe.experts - 1, "local"),
                *((Scalars(named("expert_seen"), self.members, 0, 1, "local"),) if self._may_repeat(grain) else ()),
                Scalars(named("expert"), self.most + 1, 0, self.members - 1, "local"),
                Scalars(named("expert_count"), 1, 0, self.most, "local"),
            ),
        )
        shared = Declarations() if self.shared is None else self.shared.declarations(grain)
        if self.latent is not None:
            own += self.latent.declarations(grain, self.shared is not None)
        if self.entry is not None:
            own += self.entry.declarations(grain)
        return own + shared + self.expert.declarations(grain)

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return ()

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def phases(self, grain: Grain) -> tuple[Phase | Each, ...]:
        named, rows, vectors = self.place.named, self.shape.padded_rows, self.place.named("vectors")
        values = self._route_values()
        route = Phase(named("route"), lambda site: self._route(site, grain), vectors=vectors, values=values)
        total = self._sum_value()
        begin = Phase(named("experts_begin"), self._begin_sum, vectors=vectors, values=(replace(total, begins=True),))
        shared: tuple[Phase, ...] = self.shared.phases(grain) if self.shared else ()
        if self.moe.shared_gate:
            gated = panels("mlp.gated_shared", self.output, self.spec.hidden, rows, summed=self.shape.devices > 1)
            shared += (Phase(named("shared_gate"), lambda site: self._gate(grain), values=(gated,)),)
        if shared and self.latent is not None and self.latent.fused is not None:
            shared += (self.latent.fused.send_shared(),)
        whole: tuple[Phase, ...] = ()
        if self._routed_apart:
            whole = (projection(named("router"), self.router, self.source, named("router_logits"), grain, rows),)
        if self.entry is not None and self.latent is not None:
            # What is gathered crosses the first projection of the shared expert, the first chosen experts the rest.
            until_route = (*self.entry.begin(grain), *whole, *shared[:1], *self.entry.end(), route)
            after_route: tuple[Phase, ...] = (self.latent.enter(), begin, *shared[1:])
        else:
            latent = (*self.latent.way_in_phases(grain), self.latent.enter()) if self.latent else ()
            until_route, after_route = (*whole, route), (*latent, begin, *shared)
        has_bias = self.expert.output_bias is not None
        members = (
            Phase(named("expert_weight"), self._weight, values=self._weight_values()),
            *self.expert.phases(grain),
            Phase(
                named("expert_add"),
                self._add,
                vectors=self.expert.vector_block if has_bias else None,
                values=(total,),
            ),
        )
        selection = Selection(
            named("expert"), named("expert_count"), self.members, self.most, known=after_route[0].name
        )
        return (
            *until_route,
            *after_route,
            Each(named("experts"), named("e"), selection, members),
            *(self.latent.leave(grain, joins=self.shared is not None) if self.latent else ()),
        )

    def _route_values(self) -> tuple[Value, ...]:
        """In lane r the experts of row r, the best first, and what it weighs them with."""
        top_k, buffer = self.moe.top_k, self._choices.storage
        winners, weights = (Piece(0, top_k, at, 0, 0, turned=True) for at in (0, round_up(top_k, 8)))
        return Value("mlp.winners", buffer, (winners,), "i32"), Value("mlp.weights", buffer, (weights,))

    def _weight_values(self) -> tuple[Value, ...]:
        rows, scale = self.shape.padded_rows, self.place.named("expert_scale")
        weight = Value("mlp.experts.*.weight", scale, (Piece(0, 1, 0, 1, rows),), members=self.held)
        if not self.moe.weigh_input:
            return (weight,)
        dtype, source = self.spec.quantization.operand_dtype, self.expert.source.storage
        return weight, operand("mlp.experts.*.in", source, self.inner, rows, dtype, self.held)

    def _sum_value(self) -> Value:
        """What the experts so far add up to, with what the shared expert gives where that is in the same sum."""
        width, rows, split = self.inner, self.shape.padded_rows, self.split.is_split
        if self.latent is not None:
            return panels("mlp.sum", self.total.storage, width, rows, summed=split)
        return panels("mlp.out", self.output, width, rows, summed=split)

    def _begin_sum(self, site: Site) -> tuple[Op, ...]:
        """The sum begins as zero, or as what the shared expert gives; what every expert needs of the layer is kept."""
        from_zero = self.shared is None or self.latent is not None
        kept = [compute("move", {"x": site.vector(weight)}, {"out": region}) for weight, region in self._kept_vectors()]
        return (*((compute("zero", writes={"out": self.total}),) if from_zero else ()), *kept)

    def _kept_vectors(self) -> Iterator[tuple[str, Region]]:
        """The norm of the experts' outputs: (weight, where it is kept while the layer's vectors make room)."""
        norm = self.moe.expert_norm
        for part in ("weight", "bias"):
            if norm is not None and getattr(norm, part):
                rows = ceil_div(self.inner, LANES)
                yield f"mlp.expert_norm_{part}", Region(self.place.named(f"expert_norm_{part}"), rows)

    def _gate(self, grain: Grain) -> tuple[Op, ...]:
        return (
            compute(
                "gate_rows",
                {"logits": self._logits(grain)},
                updates={"y": Region(self.output, self._sum_rows(self.spec.hidden))},
                rows=self.shape.padded_rows,
                columns=self.spec.hidden,
                column=self.moe.experts,
            ),
        )

    def _logits(self, grain: Grain) -> Region:
        if self.entry is not None and not self._routed_apart:
            return self.entry.outputs["mlp.router"][1]
        return Region(self.place.named("router_logits"), output_rows(self.router, grain, self.shape.padded_rows))

    @property
    def _first(self) -> Expr:
        """The number of this device's first expert."""
        split = self.split.experts
        group = mod(floordiv(Rank(), split.every), split.ring) if split.is_split else Const(0)
        return mul(group, split.each)

    def _route(self, site: Site, grain: Grain) -> tuple[Op, ...]:
        named, router, moe = self.place.named, self.moe.router, self.moe
        return (
            compute(
                "route",
                reads={
                    "logits": self._logits(grain),
                    "bias": site.vector("mlp.router_bias") if router.bias else None,
                    "selection_bias": site.vector("mlp.selection_bias") if router.selection_bias else None,
                },
                writes={"choices": self._choices},
                scalars={
                    "active": [Element("active", Const(row)) for row in range(self.shape.rows)],
                    "first": self._first,
                },
                sets={
                    "winners": named("winner"),
                    "chosen": named("expert"),
                    "count": named("expert_count"),
                    **({"seen": named("expert_seen")} if self._may_repeat(grain) else {}),
                },
                rows=self.shape.padded_rows,
                sequences=self.shape.rows,
                experts=moe.experts,
                members=self.members,
                top_k=moe.top_k,
                score=router.score,
                multiplier=router.logit_multiplier,
                groups=router.groups,
                groups_kept=router.groups_kept,
                group_score=router.group_score,
                renormalise=router.renormalise,
                epsilon=router.epsilon,
                scale=router.scale,
                by_number=self._by_number(grain),
            ),
        )

    @property
    def _choices(self) -> Region:
        """The experts of every row, and what it weighs them with."""
        return Region(self.place.named("choices"), 2 * round_up(self.moe.top_k, 8))

    def _by_number(self, grain: Grain) -> bool:
        return grain.orders.get(self.place.named("experts"), "found") == "number"

    def _may_repeat(self, grain: Grain) -> bool:
        """Whether the list of experts is made by marking what has been seen. One row has no expert twice, but for a row
        of NaN, whose list must not be longer than the device's experts are many."""
        return self.shape.rows > 1 or self.members < self.moe.top_k or self._by_number(grain)

    def _weight(self, site: Site) -> tuple[Op, ...]:
        """What each row weighs the expert with; its input, where that is weighed."""
        assert site.member is not None
        rows, scale = self.shape.padded_rows, Region(self.place.named("expert_scale"), self.shape.padded_rows)
        ops: tuple[Op, ...] = (
            compute(
                "expert_weight",
                {"choices": self._choices},
                {"out": scale},
                scalars={"expert": add(self._first, site.member)},
                rows=rows,
                top_k=self.moe.top_k,
            ),
        )
        if self.moe.weigh_input:
            ops += (
                compute(
                    "weigh_operand",
                    {"x": self.source, "weight": scale},
                    {"out": self.expert.source},
                    rows=rows,
                    columns=self.inner,
                    dtype=self.spec.quantization.operand_dtype,
                ),
            )
        return ops

    def _add(self, site: Site) -> tuple[Op, ...]:
        """Of the rows that have chosen it, and of no other."""
        rows, bias, norm = self.shape.padded_rows, self.expert.output_bias, self.moe.expert_norm
        y = Region(self.expert.output, self._sum_rows(self.inner))
        shape: dict[str, Attribute] = {"rows": rows, "columns": self.inner}
        ops: tuple[Op, ...] = ()
        if norm is not None:
            kept = self._kept_vectors()
            parts: dict[str, Region | None] = {name.removeprefix("mlp.expert_norm_"): region for name, region in kept}
            attributes = shape | {"eps": norm.eps, "kind": norm_kind(norm)}
            ops = (compute("norm_in_place", parts, updates={"x": y}, attributes=attributes),)
        reads: dict[str, Region | None] = {
            "y": y,
            "weight": Region(self.place.named("expert_scale"), rows),
            "bias": site.vector(bias) if bias is not None else None,
        }
        if self.moe.weigh_input:
            shape["weighed"] = True
        return (*ops, compute("add_weighted", reads, updates={"out": self.total}, attributes=shape))

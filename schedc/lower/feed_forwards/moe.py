"""Mixture of experts: the router, the shared expert while the first weights arrive, a loop over what was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedc.ir.expr import Const, Element, Expr, Rank, add, floordiv, mod, mul
from schedc.ir.program import Attribute, Buffer, Op, Region, Scalars
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import Collective, Exchanged, complete, occurrence_parity
from schedc.lower.collectives.registry import make_collective
from schedc.lower.feed_forwards.dense import DenseLowering, output_rows, projection
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
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.placement.experts import experts_of
from schedc.placement.split import evenly
from schedc.placement.widths import shared_split
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.model import ModelSpec
from schedc.spec.norm import Norm
from schedc.spec.storage import Family
from schedc.weights.layout import Columns, Inputs, Members, VectorItem


class MoeLowering:
    """Every device routes all rows and computes those of its own experts that any row has chosen."""

    def __init__(self, moe: Moe, spec: ModelSpec, shape: StepShape, place: Place, source: Region) -> None:
        self.moe, self.spec, self.shape, self.place, self.source = moe, spec, shape, place, source
        self.split = experts_of(moe, shape.devices, shape.placement)
        self.members = self.split.experts.each
        self.most = min(shape.rows * moe.top_k, self.members)
        self.inner = moe.input_width or spec.hidden
        gate = (Columns("mlp.shared_gate", 0, 1),) if moe.shared_gate else ()
        self.router = self._matrix("router", "router", spec.hidden, (Columns("mlp.router", 0, moe.experts), *gate))
        self.latent_in = self._matrix("latent_in", "dense", spec.hidden, (Columns("mlp.latent_in", 0, self.inner),))
        self.back = evenly(self.inner, shape.devices, LANES)
        self.latent_out = replace(
            self._matrix("latent_out", "dense", self.back.each, (Columns("mlp.latent_out", 0, spec.hidden),)),
            inputs=(Inputs(0, self.back.each, **self.back.shard()),) if self.back.is_split else (),
        )
        members = Members(0, self.members, of=moe.experts, **self.split.experts.shard())
        read = source
        if moe.latent is not None or moe.weigh_input:
            read = Region(place.named("expert_in"), self._operand_rows(self.inner))
        self.expert = DenseLowering(
            moe.expert,
            spec,
            shape,
            replace(place, part="expert_"),
            read,
            weights="mlp.experts.*",
            family="experts",
            width=self.split.width,
            depth=self.inner,
            members=(members,),
        )
        self.expert_vectors = VectorBlock(
            place.named("expert_vectors"), self._expert_vectors(), place.layers, (members,)
        )
        self.shared: DenseLowering | None = None
        if moe.shared is not None:
            shared_place = replace(place, part="shared_")
            self.shared = DenseLowering(
                moe.shared,
                spec,
                shape,
                shared_place,
                source,
                weights="mlp.shared",
                family="shared",
                width=shared_split(moe.shared.width, shape.devices),
            )
        self.output = place.named("mlp_out") if self.shared is None else self.shared.output
        self.total = self.output if moe.latent is None else place.named("expert_sum")
        self.output_bias = None if self.shared is None else self.shared.output_bias
        self.partial = self.split.is_split
        self.latent_sum = self._latent_sum() if moe.latent is not None and self.partial else None

    def _matrix(self, name: str, family: Family, depth: int, columns: tuple[Columns, ...]) -> Matrix:
        stored, dtype = self.spec.quantization.format(family), self.spec.quantization.operand_dtype
        return Matrix(self.place.named(f"w_{name}"), stored, dtype, depth, columns, self.place.layers)

    def _latent_sum(self) -> Collective:
        """What sums the experts' outputs over devices, before they leave the latent space."""
        devices, talk = self.shape.devices, self.shape.communication
        summed = Exchanged(
            self.place.named("latent_parts"),
            "all_reduce",
            Group(devices, devices),
            talk.topology,
            self._sum_rows(self.inner),
            talk.wire,
        )
        return make_collective(talk.all_reduce, summed)

    def _operand_rows(self, columns: int) -> int:
        return ceil_div(columns, LANES) * operand_words(self.shape.padded_rows, self.spec.quantization.operand_dtype)

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
        latent = () if self.moe.latent is None else (self.latent_in, self.latent_out)
        vectors = (self.expert_vectors,) if self.expert_vectors.items else ()
        return (self.router, *shared, *latent, *vectors, *self.expert.matrices())

    def vectors(self) -> tuple[VectorItem, ...]:
        moe, latent = self.moe, self.moe.latent
        wanted = (("mlp.router_bias", moe.router.bias), ("mlp.selection_bias", moe.router.selection_bias))
        items = [VectorItem(name, moe.experts) for name, present in wanted if present]
        norms = {"mlp.expert_norm": moe.expert_norm}
        if latent is not None:
            norms |= {"mlp.latent_norm_in": latent.norm_in, "mlp.latent_norm_out": latent.norm_out}
        for name, norm in norms.items():
            if norm is not None and norm.weight:
                items.append(VectorItem(f"{name}_weight", self.inner, add=float(norm.unit_offset)))
            if norm is not None and norm.bias:
                items.append(VectorItem(f"{name}_bias", self.inner))
        return (*items, *(self.shared.vectors() if self.shared else ()))

    def declarations(self, grain: Grain) -> Declarations:
        rows, named, moe = self.shape.padded_rows, self.place.named, self.moe
        buffers = {
            named("router_logits"): output_rows(self.router, grain, rows),
            named("routed"): round_up(moe.experts, 8),
            named("expert_scale"): rows,
        }
        if self.expert.source.storage == named("expert_in"):
            buffers[named("expert_in")] = self.expert.source.rows
        if self.shared is None:
            buffers[self.output] = self._sum_rows(self.spec.hidden)
        if moe.latent is not None:
            buffers[named("expert_latent")] = output_rows(self.latent_in, grain, rows)
            buffers[self.total] = self._sum_rows(self.inner)
            buffers[named("expert_latent_sum")] = self._operand_rows(self.back.each * self.back.ring)
            buffers[named("expert_latent_back")] = output_rows(self.latent_out, grain, rows)
        buffers |= {region.storage: region.rows for _, region in self._kept_vectors()}
        own = Declarations(
            buffers=tuple(Buffer(name, WORK, size) for name, size in buffers.items()),
            scalars=(
                Scalars(named("winner"), self.shape.rows * moe.top_k, -1, moe.experts - 1, "local"),
                Scalars(named("expert_seen"), self.members, 0, 1, "local"),
                Scalars(named("expert"), self.most + 1, 0, self.members - 1, "local"),
                Scalars(named("expert_count"), 1, 0, self.most, "local"),
            ),
        )
        shared = Declarations() if self.shared is None else self.shared.declarations(grain)
        if self.latent_sum is not None:
            own += self.latent_sum.declarations()
        return own + shared + self.expert.declarations(grain)

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return ()

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def phases(self, grain: Grain) -> tuple[Phase | Each, ...]:
        named, rows, vectors = self.place.named, self.shape.padded_rows, self.place.named("vectors")
        before = (
            *self._latent_in_phases(grain),
            Phase(named("experts_begin"), self._begin_sum, vectors=vectors),
            *(self.shared.phases(grain) if self.shared else ()),
            *((Phase(named("shared_gate"), lambda site: self._gate(grain)),) if self.moe.shared_gate else ()),
        )
        has_bias = self.expert.output_bias is not None
        members = (
            Phase(named("expert_weight"), self._weight),
            *self.expert.phases(grain),
            Phase(named("expert_add"), self._add, vectors=self.expert.vector_block if has_bias else None),
        )
        selection = Selection(named("expert"), named("expert_count"), self.members, self.most, known=before[0].name)
        return (
            projection(named("router"), self.router, self.source, named("router_logits"), grain, rows),
            Phase(named("route"), lambda site: self._route(site, grain), vectors=vectors),
            *before,
            Each(named("experts"), named("e"), selection, members),
            *self._latent_out_phases(grain),
        )

    def _begin_sum(self, site: Site) -> tuple[Op, ...]:
        """The sum begins as zero, or as what the shared expert gives; what every expert needs of the layer is kept."""
        total = Region(self.total, self._sum_rows(self.inner))
        from_zero = self.shared is None or self.total != self.output
        kept = [compute("move", {"x": site.vector(weight)}, {"out": region}) for weight, region in self._kept_vectors()]
        return (*((compute("zero", writes={"out": total}),) if from_zero else ()), *kept)

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

    # The latent space

    def _latent_in_phases(self, grain: Grain) -> tuple[Phase, ...]:
        latent, named = self.moe.latent, self.place.named
        if latent is None:
            return ()
        result = Region(named("expert_latent"), self._sum_rows(self.inner))
        operand = Region(named("expert_in"), self._operand_rows(self.inner))
        if self.moe.weigh_input:
            operand = replace(operand, storage=named("expert_latent_in"))

        def normed(site: Site) -> tuple[Op, ...]:
            return (self._as_operand(site, latent.norm_in, "mlp.latent_norm_in", result, operand),)

        return (
            projection(
                named("expert_latent_in"), self.latent_in, self.source, result.storage, grain, self.shape.padded_rows
            ),
            Phase(named("expert_latent_norm_in"), normed, vectors=named("vectors")),
        )

    def _latent_out_phases(self, grain: Grain) -> tuple[Phase, ...]:
        latent, named, rows = self.moe.latent, self.place.named, self.shape.padded_rows
        if latent is None:
            return ()
        total = Region(self.total, self._sum_rows(self.inner))
        whole = Region(named("expert_latent_sum"), self._operand_rows(self.back.each * self.back.ring))
        operand = replace(whole, rows=self._operand_rows(self.inner))
        part = replace(whole, rows=self._operand_rows(self.back.each))
        if self.back.is_split:
            part = replace(part, offset=mul(Rank(), part.rows))
        back = Region(named("expert_latent_back"), self._sum_rows(self.spec.hidden))
        output = replace(back, storage=self.output)

        def normed(site: Site) -> tuple[Op, ...]:
            clear = (compute("zero", writes={"out": whole}),) if whole.rows > operand.rows else ()
            return (*clear, self._as_operand(site, latent.norm_out, "mlp.latent_norm_out", total, operand))

        def leave(site: Site) -> tuple[Op, ...]:
            if self.shared is None:
                return (compute("move", {"x": back}, {"out": output}),)
            shape = {"rows": rows, "columns": self.spec.hidden}
            return (compute("residual_add", {"y": back}, updates={"x": output}, attributes=shape),)

        return (
            *self._latent_sum_phases(total),
            Phase(named("expert_latent_norm_out"), normed, vectors=named("vectors")),
            projection(named("expert_latent_out"), self.latent_out, part, back.storage, grain, rows),
            Phase(named("expert_latent_add"), leave),
        )

    def _latent_sum_phases(self, total: Region) -> tuple[Phase, ...]:
        collective, named = self.latent_sum, self.place.named
        if collective is None:
            return ()

        def parity(site: Site) -> Expr:
            return occurrence_parity(0, 1, 0, site.trip)

        return (
            Phase(named("expert_latent_send"), lambda site: collective.start(total, parity(site))),
            Phase(named("expert_latent_total"), lambda site: complete(collective, total, parity(site))),
        )

    def _as_operand(self, site: Site, norm: Norm | None, name: str, x: Region, out: Region) -> Op:
        """The left side of a dot, normalised if there is a norm."""
        shape: dict[str, Attribute] = {
            "rows": self.shape.padded_rows,
            "columns": self.inner,
            "dtype": self.spec.quantization.operand_dtype,
        }
        if norm is None:
            return compute("as_operand", {"x": x}, {"out": out}, attributes=shape)
        parts = {part: site.vector(f"{name}_{part}") for part in ("weight", "bias") if getattr(norm, part)}
        return compute("norm", {"x": x} | parts, {"out": out}, attributes=shape, eps=norm.eps, kind=norm_kind(norm))

    # The router and the experts

    def _logits(self, grain: Grain) -> Region:
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
                writes={"weights": self._weights},
                scalars={
                    "active": [Element("active", Const(row)) for row in range(self.shape.rows)],
                    "first": self._first,
                },
                sets={
                    "winners": named("winner"),
                    "seen": named("expert_seen"),
                    "chosen": named("expert"),
                    "count": named("expert_count"),
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
                by_number=grain.orders.get(named("experts"), "found") == "number",
            ),
        )

    @property
    def _weights(self) -> Region:
        return Region(self.place.named("routed"), round_up(self.moe.experts, 8))

    def _weight(self, site: Site) -> tuple[Op, ...]:
        """What each row weighs the expert with; its input, where that is weighed."""
        assert site.member is not None
        rows, scale = self.shape.padded_rows, Region(self.place.named("expert_scale"), self.shape.padded_rows)
        ops: tuple[Op, ...] = (
            compute(
                "expert_weight",
                {"weights": self._weights},
                {"out": scale},
                scalars={"expert": add(self._first, site.member)},
                rows=rows,
            ),
        )
        if self.moe.weigh_input:
            latent = self.moe.latent is not None
            x = replace(self.expert.source, storage=self.place.named("expert_latent_in")) if latent else self.source
            ops += (
                compute(
                    "weigh_operand",
                    {"x": x, "weight": scale},
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
            parts = {weight.removeprefix("mlp.expert_norm_"): region for weight, region in self._kept_vectors()}
            attributes = shape | {"eps": norm.eps, "kind": norm_kind(norm)}
            ops = (compute("norm_in_place", parts, updates={"x": y}, attributes=attributes),)
        reads = {
            "y": y,
            "weight": Region(self.place.named("expert_scale"), rows),
            "bias": site.vector(bias) if bias is not None else None,
        }
        updates = {"out": Region(self.total, y.rows)}
        weighed = {"weighed": True} if self.moe.weigh_input else {}
        return (*ops, compute("add_weighted", reads, updates=updates, attributes=shape, **weighed))

"""Mixture of experts: the router, the shared expert while the first weights arrive, a loop over what was chosen."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Const, Element, Expr, Rank, add, floordiv, mod, mul
from schedc.ir.program import Buffer, Op, Region, Scalars
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
from schedc.lower.parts import WORK, Place, compute
from schedc.placement.experts import experts_of
from schedc.placement.widths import shared_split
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
        gate = (Columns("mlp.shared_gate", 0, 1),) if moe.shared_gate else ()
        self.router = Matrix(
            place.named("w_router"),
            spec.quantization.format("router"),
            spec.quantization.operand_dtype,
            spec.hidden,
            (Columns("mlp.router", 0, moe.experts), *gate),
            place.layers,
        )
        members = Members(0, self.members, of=moe.experts, **self.split.experts.shard())
        self.expert = DenseLowering(
            moe.expert,
            spec,
            shape,
            replace(place, part="expert_"),
            source,
            weights="mlp.experts.*",
            family="experts",
            width=self.split.width,
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
        self.output_bias = None if self.shared is None else self.shared.output_bias
        self.partial = self.split.is_split

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
        vectors = (self.expert_vectors,) if self.expert_vectors.items else ()
        return (self.router, *shared, *vectors, *self.expert.matrices())

    def vectors(self) -> tuple[VectorItem, ...]:
        router, experts = self.moe.router, self.moe.experts
        wanted = (("mlp.router_bias", router.bias), ("mlp.selection_bias", router.selection_bias))
        items = tuple(VectorItem(name, experts) for name, present in wanted if present)
        return items + (self.shared.vectors() if self.shared else ())

    def declarations(self, grain: Grain) -> Declarations:
        rows, named, experts = self.shape.padded_rows, self.place.named, self.moe.experts
        own = Declarations(
            buffers=(
                Buffer(named("router_logits"), WORK, output_rows(self.router, grain, rows)),
                Buffer(named("routed"), WORK, round_up(experts, 8)),
                Buffer(named("expert_scale"), WORK, rows),
            ),
            scalars=(
                Scalars(named("winner"), self.shape.rows * self.moe.top_k, 0, experts - 1, "local"),
                Scalars(named("expert_seen"), self.members, 0, 1, "local"),
                Scalars(named("expert"), self.most + 1, 0, self.members - 1, "local"),
                Scalars(named("expert_count"), 1, 0, self.most, "local"),
            ),
        )
        if self.shared is None:
            panels = ceil_div(self.spec.hidden, LANES)
            own += Declarations((Buffer(self.output, WORK, panels * rows),))
        else:
            own += self.shared.declarations(grain)
        return own + self.expert.declarations(grain)

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return ()

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def phases(self, grain: Grain) -> tuple[Phase | Each, ...]:
        named, rows = self.place.named, self.shape.padded_rows
        first = self._shared_phases(grain)
        each = Each(
            named("experts"),
            named("e"),
            Selection(named("expert"), named("expert_count"), self.members, self.most, known=first[0].name),
            (
                *self.expert.phases(grain),
                Phase(named("expert_add"), self._add, vectors=self.expert.vector_block if self._has_bias else None),
            ),
        )
        return (
            projection(named("router"), self.router, self.source, named("router_logits"), grain, rows),
            Phase(named("route"), lambda site: self._route(site, grain), vectors=named("vectors")),
            *first,
            each,
        )

    @property
    def _has_bias(self) -> bool:
        return self.expert.output_bias is not None

    def _shared_phases(self, grain: Grain) -> tuple[Phase, ...]:
        """The sum begins as what the shared expert gives, or as zero."""
        named, rows, moe = self.place.named, self.shape.padded_rows, self.moe
        panels = ceil_div(self.spec.hidden, LANES)
        total = Region(self.output, panels * rows)
        if self.shared is None:
            return (Phase(named("clear"), lambda site: (compute("zero", writes={"out": total}),)),)
        phases = self.shared.phases(grain)
        if not moe.shared_gate:
            return phases

        def gate(site: Site) -> tuple[Op, ...]:
            return (
                compute(
                    "gate_rows",
                    {"logits": self._logits(grain)},
                    updates={"y": total},
                    rows=rows,
                    columns=self.spec.hidden,
                    column=moe.experts,
                ),
            )

        return (*phases, Phase(named("shared_gate"), gate))

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

    def _add(self, site: Site) -> tuple[Op, ...]:
        """Of the rows that have chosen it, and of no other."""
        rows, panels = self.shape.padded_rows, ceil_div(self.spec.hidden, LANES)
        weight = Region(self.place.named("expert_scale"), rows)
        assert site.member is not None
        expert = add(self._first, site.member)
        return (
            compute(
                "expert_weight", {"weights": self._weights}, {"out": weight}, scalars={"expert": expert}, rows=rows
            ),
            compute(
                "add_weighted",
                reads={
                    "y": Region(self.expert.output, panels * rows),
                    "weight": weight,
                    "bias": site.vector(self.expert.output_bias) if self.expert.output_bias else None,
                },
                updates={"out": Region(self.output, panels * rows)},
                rows=rows,
                columns=self.spec.hidden,
            ),
        )

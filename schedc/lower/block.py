"""One layer: norm, mixer, residual, norm, feed-forward, residual, in the block's placement of norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schedc.ir.expr import Const
from schedc.ir.program import Buffer, Op, Region
from schedc.lower.collectives.sums import Cut, Sum
from schedc.lower.graph import (
    LANES,
    Declarations,
    Each,
    Grain,
    Phase,
    Prefetch,
    Site,
    StepShape,
    Stream,
    VectorBlock,
    ceil_div,
)
from schedc.lower.norms import norm_items
from schedc.lower.parts import WORK, Part, Place, operand_words
from schedc.lower.registry import FEED_FORWARDS, MIXERS
from schedc.lower.residuals.protocol import ResidualLowering
from schedc.lower.residuals.stream import residual_rows
from schedc.lower.values import operand, panels
from schedc.spec.model import HALVES, Block, Half, ModelSpec


class BlockLowering:
    """What a half reads, and how its output joins, says the `residual` of the model.

    Where devices have partial outputs, these are summed first.
    """

    def __init__(
        self,
        block: Block,
        spec: ModelSpec,
        shape: StepShape,
        place: Place,
        rope: Region | None,
        residual: ResidualLowering,
    ) -> None:
        self.block, self.spec, self.shape, self.place, self.residual = block, spec, shape, place, residual
        self.dtype = spec.quantization.operand_dtype
        words = ceil_div(spec.hidden, LANES) * operand_words(shape.padded_rows, self.dtype)
        self.inputs = {half: Region(place.named(f"{half}_in"), words) for half in HALVES}
        self.mixer: Part = MIXERS[block.mixer.kind](block.mixer, spec, shape, place, self.inputs["mixer"], rope)
        self.feed_forward: Part = FEED_FORWARDS[block.feed_forward.kind](
            block.feed_forward, spec, shape, place, self.inputs["feed_forward"]
        )
        norms = norm_items(block.pre_norm, "pre_mixer_norm", spec) + norm_items(
            block.post_mixer_norm, "post_mixer_norm", spec
        )
        norms += norm_items(block.pre_norm, "pre_feed_forward_norm", spec)
        norms += norm_items(block.post_feed_forward_norm, "post_feed_forward_norm", spec)
        items = (*norms, *residual.layer_vectors(), *self.mixer.vectors(), *self.feed_forward.vectors())
        self.vectors = VectorBlock(place.named("vectors"), items, place.layers)

    def streams(self) -> tuple[Stream, ...]:
        return self.vectors, *self.mixer.matrices(), *self.feed_forward.matrices()

    def declarations(self, grain: Grain) -> Declarations:
        inputs = Declarations(tuple(Buffer(region.storage, WORK, region.rows) for region in self.inputs.values()))
        return inputs + self.mixer.declarations(grain) + self.feed_forward.declarations(grain)

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return self.mixer.prefetches(grain) + self.feed_forward.prefetches(grain)

    def cuts(self, grain: Grain) -> tuple[Cut, ...]:
        """How the partial outputs of a layer are cut for their sums over the devices."""
        return tuple(self._cut(half, part, grain) for half, part in self._halves() if part.partial)

    def _halves(self) -> tuple[tuple[Half, Part], ...]:
        return ("mixer", self.mixer), ("feed_forward", self.feed_forward)

    def _cut(self, half: Half, part: Part, grain: Grain) -> Cut:
        last, height, used = part.phases(grain)[-1], self.shape.padded_rows, self.shape.rows
        how = self.shape.communication.algorithm(half), self.shape.communication.wire_of(half)
        if grain.sums == "tiles" and isinstance(last, Phase) and last.fills == part.output:
            matrix = next(matrix for matrix in part.matrices() if matrix.name == last.stream)
            return Cut(grain.tile_units[matrix.name] * height, grain.tiles(matrix), height, used, *how)
        return Cut(residual_rows(self.spec, self.shape), 1, height, used, *how)

    def phases(self, grain: Grain, sums: Sequence[Sum]) -> tuple[Phase | Each, ...]:
        """`sums` are those of the partial outputs of a layer, in their order."""
        phases: list[Phase | Each] = []
        left = iter(sums)
        for half, part in self._halves():
            inside = part.phases(grain)
            if part.partial:
                inside = self._summed(half, part, inside, next(left))
            phases += [self._enter(half), *inside, self._leave(half, part)]
        settled = tuple(op for _, part in self._halves() for op in part.end(grain))
        if settled:
            phases.append(Phase(self.place.named("settle"), lambda site: settled))
        return tuple(_of_layers(phase, self.place.layers) for phase in phases)

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        """What must happen once before the first layer."""
        return self.mixer.begin(grain) + self.feed_forward.begin(grain)

    def _enter(self, half: Half) -> Phase:
        def ops(site: Site) -> tuple[Op, ...]:
            return self.residual.enter(half, self.block.pre_norm, self.inputs[half], site, self.place)

        source, rows = self.inputs[half].storage, self.shape.padded_rows
        entered = operand(f"{half}.in", source, self.spec.hidden, rows, self.dtype)
        return Phase(self.place.named(f"{half}_norm"), ops, vectors=self.vectors.name, values=(entered,))

    def _summed(
        self, half: Half, part: Part, phases: tuple[Phase | Each, ...], summed: Sum
    ) -> tuple[Phase | Each, ...]:
        """The phases of a half and the sum of its output, sent with each tile of the last of them, or after them."""
        output, named = part.output, self.place.named
        last = phases[-1]
        if summed.pieces > 1 and isinstance(last, Phase):
            tile = last.ops
            start = replace(last, ops=lambda site: (*tile(site), *summed.start(output, site.trip, site.tile)))
            phases = (*phases[:-1], start)
        else:
            send = Phase(named(f"{half}_send"), lambda site: summed.start(output, site.trip, Const(0)))
            phases = (*phases, send)
        total = panels(part.meaning, output, self.spec.hidden, self.shape.padded_rows)
        return *phases, Phase(named(f"{half}_sum"), lambda site: summed.finish(output, site.trip), values=(total,))

    def _leave(self, half: Half, part: Part) -> Phase:
        def ops(site: Site) -> tuple[Op, ...]:
            return self.residual.leave(half, self.block.post_norm(half), part, site)

        stream = panels(f"{half}.stream", "x", self.spec.hidden, self.shape.padded_rows)
        return Phase(self.place.named(f"{half}_residual"), ops, vectors=self.vectors.name, values=(stream,))


def _of_layers(phase: Phase | Each, layers: tuple[int, ...]) -> Phase | Each:
    if isinstance(phase, Each):
        return replace(phase, phases=tuple(replace(inner, layers=layers) for inner in phase.phases))
    return replace(phase, layers=layers)

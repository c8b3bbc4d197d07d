"""The dense feed-forward: one streamed projection up (gate and up side by side), the activation, one down."""

from __future__ import annotations

from schedc.ir.expr import mul
from schedc.ir.program import Buffer, Op, Region
from schedc.lower.graph import LANES, Declarations, Grain, Matrix, Phase, Prefetch, Site, StepShape, ceil_div, round_up
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.values import of_columns, operand
from schedc.placement.split import Split
from schedc.placement.widths import dense_split
from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.model import ModelSpec
from schedc.spec.storage import Family
from schedc.weights.layout import Columns, Inputs, Members, VectorItem


class DenseLowering:
    """`weights` stands before the names of its weights, of `family`; `width` says which columns a device holds.

    `depth` is the width of its input and output (None: the model's). With `members` it is one of many, each with its
    own weights and vectors.
    """

    def __init__(
        self,
        dense: Dense,
        spec: ModelSpec,
        shape: StepShape,
        place: Place,
        source: Region,
        *,
        weights: str = "mlp",
        family: Family = "dense",
        width: Split | None = None,
        depth: int | None = None,
        members: tuple[Members, ...] = (),
    ) -> None:
        split = width or dense_split(dense.width, shape.devices, shape.placement)
        self.width, self.partial = split.each, split.is_split
        self.split, self.weights, self.depth = split, weights, depth or spec.hidden
        self.dense, self.spec, self.shape, self.place, self.source = dense, spec, shape, place, source
        self.dtype = spec.quantization.operand_dtype
        stored = spec.quantization.format(family)
        self.vector_block: str | None = "vectors" + place.suffix
        if members:
            self.vector_block = place.named("vectors") if any(dense.bias.model_dump().values()) else None
        self.hidden = place.named("mlp_hidden")
        self.activated = place.named("mlp_activated")
        self.output, self.meaning = place.named("mlp_out"), f"{weights}.down"
        self.output_bias = f"{weights}.down_bias" if dense.bias.down else None
        halves = ("gate", "up") if dense.gated else ("up",)
        self.up = Matrix(
            place.named("w_up"),
            stored,
            self.dtype,
            self.depth,
            tuple(
                Columns(f"{weights}.{half}", 0, self.width, round_up(self.width, LANES), **split.shard())
                for half in halves
            ),
            place.layers,
            members=members,
        )
        self.down = Matrix(
            place.named("w_down"),
            stored,
            self.dtype,
            self.width,
            (Columns(f"{weights}.down", 0, self.depth),),
            place.layers,
            (Inputs(0, self.width, **split.shard()),) if split.is_split else (),
            members,
        )

    def matrices(self) -> tuple[Matrix, ...]:
        return self.up, self.down

    def vectors(self) -> tuple[VectorItem, ...]:
        bias, split = self.dense.bias, self.split
        wanted = ((f"{self.weights}.gate_bias", bias.gate), (f"{self.weights}.up_bias", bias.up))
        items = [VectorItem(name, split.each, of=split.total, **split.shard()) for name, present in wanted if present]
        if self.output_bias is not None:
            items.append(VectorItem(self.output_bias, self.depth))
        return tuple(items)

    def declarations(self, grain: Grain) -> Declarations:
        rows = self.shape.padded_rows
        activated = ceil_div(self.width, LANES) * operand_words(rows, self.dtype)
        return Declarations(
            buffers=(
                Buffer(self.hidden, WORK, output_rows(self.up, grain, rows)),
                Buffer(self.activated, WORK, activated),
                Buffer(self.output, WORK, output_rows(self.down, grain, rows)),
            )
        )

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return ()

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return ()

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows = self.shape.padded_rows
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        bias = self.dense.bias

        def activation(site: Site) -> tuple[Op, ...]:
            return (
                compute(
                    "gated" if self.dense.gated else "plain",
                    reads={
                        "y": whole[self.hidden],
                        "gate_bias": site.vector(f"{self.weights}.gate_bias") if bias.gate else None,
                        "up_bias": site.vector(f"{self.weights}.up_bias") if bias.up else None,
                    },
                    writes={"out": whole[self.activated]},
                    attributes={
                        "rows": rows,
                        "width": self.width,
                        "activation": self.dense.activation,
                        "dtype": self.dtype,
                        **self.dense.parameters_of_activation,
                    },
                ),
            )

        name, members = f"{self.weights}.activated", next(iter(self.up.members), None)
        activated = operand(name, self.activated, self.width, rows, self.dtype, members, **self.split.shard())
        return (
            projection(self.place.named("up"), self.up, self.source, self.hidden, grain, rows),
            Phase(self.place.named("activation"), activation, vectors=self.vector_block, values=(activated,)),
            projection(self.place.named("down"), self.down, whole[self.activated], self.output, grain, rows),
        )


def output_rows(matrix: Matrix, grain: Grain, rows: int) -> int:
    """Rows of the f32 result of a projection, whole tiles of columns."""
    return grain.tiles(matrix) * grain.tile_units[matrix.name] * rows


def projection(name: str, matrix: Matrix, source: Region, output: str, grain: Grain, rows: int) -> Phase:
    """output = source · matrix, a tile of columns at a time."""
    panels = grain.tile_units[matrix.name]

    def tile(site: Site) -> tuple[Op, ...]:
        return (
            compute(
                "matmul",
                reads={"x": source, "w": site.weight},
                writes={"out": Region(output, panels * rows, mul(site.tile, panels * rows))},
                rows=rows,
                depth=matrix.depth,
                panels=panels,
                dtype=matrix.dtype,
                format=matrix.stored,
            ),
        )

    summed = any(block.step for block in matrix.inputs)
    values = of_columns(matrix.columns, output, rows, summed, next(iter(matrix.members), None))
    return Phase(name, tile, stream=matrix.name, fills=output, values=values)

"""How the packed weights lie in HBM: every array is `int32[rows, 128]`, and one of these layouts describes it.

Layouts are plain data (`to_dict`, `from_dict`), part of the manifest of a compiled kernel. What fills the
words is one file a form in `forms/`. Weight names are those of `source.py`; with layers they are suffixes
such as `attn.q`, which stand for `layers.{i}.attn.q`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from hashlib import sha256
from json import dumps
from math import ceil
from typing import Any, ClassVar

from schedc.spec.rope import Rope
from schedc.weights.formats import FORMATS
from schedc.weights.words import LANES, WORD_ROWS, WordDtype, lanes_up, per_word


@dataclass(frozen=True)
class Columns:
    """`count` outputs of `weight` from `start`, then zeros up to `pad_to` columns; zeros past the weight's last.

    On device d they start (d // every) % ring · step further on, as all parts with these three fields do.
    """

    weight: str
    start: int
    count: int
    pad_to: int = 0
    step: int = 0
    every: int = 1
    ring: int = 1

    @property
    def width(self) -> int:
        return max(self.count, self.pad_to)


@dataclass(frozen=True)
class Inputs:
    """`count` inputs of the weights from `start`, then zeros up to `pad_to` rows; zeros past the weights' last."""

    start: int
    count: int
    pad_to: int = 0
    step: int = 0
    every: int = 1
    ring: int = 1

    @property
    def width(self) -> int:
        return max(self.count, self.pad_to)


@dataclass(frozen=True)
class Members:
    """`count` of a layer's `of` equal parts, such as experts, from `start`; zeros past the last.

    Weights of a layout with members are named with a * for the member's number: `mlp.experts.*.gate`.
    """

    start: int
    count: int
    of: int
    step: int = 0
    every: int = 1
    ring: int = 1


@dataclass(frozen=True)
class PanelMatrix:
    """A matrix [k, N] a layer: the column blocks side by side, zeros up to tiles · tile_panels · 128 columns.

    Order of the words: [layer][tile][panel][word row][128 lanes]; a panel is 128 columns, its word rows are the
    sections of the `format` (formats/). No layers: one matrix, of weights outside the layers.
    With `members` there is one for each of them: [layer][member][tile]….
    `inputs` rearranges the k rows (empty: the weights' own order), for inputs that come padded by head; they begin
    and end at whole groups of the format.
    """

    form: ClassVar[str] = "panel_matrix"

    name: str
    format: str
    layers: tuple[int, ...]
    k: int
    tiles: int
    tile_panels: int
    columns: tuple[Columns, ...]
    inputs: tuple[Inputs, ...] = ()
    members: tuple[Members, ...] = ()

    def __post_init__(self) -> None:
        width = sum(block.width for block in self.columns)
        if width > self.width:
            raise ValueError(f"{self.name}: columns need {width} of {self.width} columns")
        rows = sum(block.width for block in self.inputs)
        if self.inputs and rows != self.k:
            raise ValueError(f"{self.name}: inputs give {rows} rows, k is {self.k}")
        group = FORMATS[self.format].group
        for block in self.inputs:
            if block.start % group or block.width % group:
                raise ValueError(
                    f"{self.name}: {self.format} has groups of {group} inputs, which a block of {block.width} from "
                    f"{block.start} on divides; take multiples of {group}"
                )

    @property
    def width(self) -> int:
        return self.tiles * self.tile_panels * LANES

    @property
    def panel_rows(self) -> int:
        """Word rows of one panel."""
        return FORMATS[self.format].panel_rows(self.k)

    @property
    def tile_rows(self) -> int:
        return self.tile_panels * self.panel_rows

    @property
    def layer_rows(self) -> int:
        """Word rows of one matrix."""
        return self.tiles * self.tile_rows

    @property
    def rows(self) -> int:
        return max(len(self.layers), 1) * copies(self.members) * self.layer_rows


@dataclass(frozen=True)
class HeadOutputs:
    """Of each of `heads` heads `count` outputs of `weight`; those of the next begin `stride` outputs further on.

    Heads past the weight's last are zeros.
    """

    weight: str
    heads: int
    start: int
    count: int
    stride: int
    step: int = 0
    every: int = 1
    ring: int = 1


@dataclass(frozen=True)
class HeadMatrices:
    """A matrix [depth, width] a head: its `depth` outputs of a weight that has `width` inputs, so transposed.

    Order of the words: [layer][tile][head][panel][depth / per_word][128 lanes], zeros for heads past the last.
    A dot with it takes what a head's outputs are multiplied by to the weight's inputs. It is stored as `dtype`
    whatever the weight's format: groups of inputs become rows of columns, which no other format keeps.
    """

    form: ClassVar[str] = "head_matrices"

    name: str
    dtype: WordDtype
    layers: tuple[int, ...]
    depth: int
    width: int
    tiles: int
    tile_heads: int
    blocks: tuple[HeadOutputs, ...]

    def __post_init__(self) -> None:
        heads = sum(block.heads for block in self.blocks)
        if heads > self.heads:
            raise ValueError(f"{self.name}: {heads} heads, and room for {self.heads}")
        if any(block.count != self.depth for block in self.blocks):
            raise ValueError(f"{self.name}: heads of other than {self.depth} outputs")

    @property
    def heads(self) -> int:
        return self.tiles * self.tile_heads

    @property
    def head_rows(self) -> int:
        """Word rows of one head."""
        return lanes_up(self.width) // LANES * FORMATS[self.dtype].panel_rows(self.depth)

    @property
    def rows(self) -> int:
        return max(len(self.layers), 1) * self.heads * self.head_rows


@dataclass(frozen=True)
class RowTable:
    """A table of `entries` rows of `width` numbers, each row fetched by its own transfer (an embedding).

    An entry has P = ceil(width / 128) panels. bf16: ceil(P / 2) = nr word rows, word row i holds panel i in the
    low halves and panel i + nr in the high ones, zeros where there is none. f32: word row i is panel i.
    """

    form: ClassVar[str] = "row_table"

    name: str
    dtype: WordDtype
    entries: int
    width: int
    weight: str = "embed"

    @property
    def panels(self) -> int:
        return ceil(self.width / LANES)

    @property
    def entry_rows(self) -> int:
        return ceil(self.panels / per_word(self.dtype))

    @property
    def rows(self) -> int:
        return self.entries * self.entry_rows


@dataclass(frozen=True)
class VectorItem:
    """One f32 vector of `length` numbers, `add`ed to, `repeat`ed, and padded to a multiple of 128 lanes.

    With `block`, every `block` numbers are padded with zeros to `block_lanes` (a bias by head, when heads are
    padded). `add` 1 turns a norm weight with a unit offset into the factor it stands for. Where devices hold parts
    of the vector, it has `of` numbers, of which these begin at `start`; zeros past the last. With `taps` the weight is
    [length, taps], the filters of a convolution, and lies as so many vectors, tap by tap.
    """

    weight: str
    length: int
    repeat: int = 1
    block: int = 0
    block_lanes: int = 0
    add: float = 0.0
    start: int = 0
    of: int = 0
    step: int = 0
    every: int = 1
    ring: int = 1
    taps: int = 0

    def __post_init__(self) -> None:
        if self.block and (self.length % self.block or self.block_lanes < self.block):
            raise ValueError(
                f"{self.weight}: {self.length} numbers in blocks of {self.block}, {self.block_lanes} lanes"
            )

    @property
    def lanes(self) -> int:
        once = self.length // self.block * self.block_lanes if self.block else self.length
        return lanes_up(once * self.repeat)

    @property
    def rows(self) -> int:
        return max(self.taps, 1) * self.lanes // LANES

    @property
    def padded_rows(self) -> int:
        return ceil(self.rows / WORD_ROWS) * WORD_ROWS


@dataclass(frozen=True)
class Vectors:
    """Small f32 vectors, each from a multiple of 8 rows on, so that a slot's vectors can be loaded at any slot.

    With `members` there is such a block for each of them.
    """

    form: ClassVar[str] = "vectors"

    name: str
    layers: tuple[int, ...]
    items: tuple[VectorItem, ...]
    members: tuple[Members, ...] = ()

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first row of each item in its layer's block."""
        offsets, row = [], 0
        for item in self.items:
            offsets.append(row)
            row += item.padded_rows
        return tuple(offsets)

    @property
    def layer_rows(self) -> int:
        """Word rows of one block."""
        return sum(item.padded_rows for item in self.items)

    @property
    def rows(self) -> int:
        return max(len(self.layers), 1) * copies(self.members) * self.layer_rows


def copies(members: tuple[Members, ...]) -> int:
    """Matrices, or blocks of vectors, a layer."""
    return sum(part.count for part in members) if members else 1


@dataclass(frozen=True)
class RopeTable:
    """f32 cos and sin by position, for y = x · cos + swap_halves(x) · sin on a head of `head_lanes` lanes.

    `swap_halves` swaps dimensions i and i + rotary_dim / 2. The factor m of the scaling is multiplied into both;
    sin is negated in the first half; beyond rotary_dim cos is 1 and sin 0. A position has head_lanes / 128 panels,
    each a word row of cos, then a word row of sin.
    """

    form: ClassVar[str] = "rope_table"

    name: str
    positions: int
    rotary_dim: int
    head_lanes: int
    rope: Rope

    def __post_init__(self) -> None:
        if self.head_lanes % LANES or self.rotary_dim > self.head_lanes:
            raise ValueError(f"{self.name}: {self.rotary_dim} dimensions turn in heads of {self.head_lanes} lanes")

    @property
    def position_rows(self) -> int:
        return 2 * self.head_lanes // LANES

    @property
    def rows(self) -> int:
        return self.positions * self.position_rows


Layout = PanelMatrix | HeadMatrices | RowTable | Vectors | RopeTable

_PARTS: dict[tuple[str, str], type] = {
    ("panel_matrix", "columns"): Columns,
    ("panel_matrix", "inputs"): Inputs,
    ("panel_matrix", "members"): Members,
    ("head_matrices", "blocks"): HeadOutputs,
    ("vectors", "members"): Members,
    ("vectors", "items"): VectorItem,
}
_FORMS: dict[str, type[Layout]] = {cls.form: cls for cls in (PanelMatrix, HeadMatrices, RowTable, Vectors, RopeTable)}


def on_device(layout: Layout, device: int) -> Layout:
    """What device `device` holds: the same layout, with every part where it starts there."""

    def resolved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(resolved(item) for item in value)
        if not (is_dataclass(value) and hasattr(value, "step")):
            return value
        part: Any = value
        shift = device // part.every % part.ring * part.step
        return replace(part, start=part.start + shift, step=0, every=1, ring=1)

    return replace(layout, **{field.name: resolved(getattr(layout, field.name)) for field in fields(layout)})


def to_dict(layout: Layout) -> dict[str, Any]:
    """Plain data of lists, numbers and text; `from_dict` of it gives an equal layout."""
    data = {"form": layout.form} | asdict(layout)
    if isinstance(layout, RopeTable):
        data["rope"] = layout.rope.model_dump(mode="json", exclude_defaults=True)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def from_dict(data: dict[str, Any]) -> Layout:
    """Raises KeyError for an unknown form, TypeError for an unknown or absent key."""
    form = data["form"]
    values: dict[str, Any] = {}
    for key, value in data.items():
        part = _PARTS.get((form, key))
        if part is not None:
            values[key] = tuple(part(**entry) for entry in value)
        elif key == "rope":
            values[key] = Rope.model_validate(value)
        elif key != "form":
            values[key] = tuple(value) if isinstance(value, list) else value
    return _FORMS[form](**values)


def layouts_hash(layouts: Sequence[Layout]) -> str:
    """sha256 of what a packed file holds and in which order: equal layouts, equal hash."""
    text = dumps([to_dict(layout) for layout in layouts], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()

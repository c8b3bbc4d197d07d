"""The kernel's cache in HBM as 32-bit words, `int32[rows, 128]`: what attention keeps of every token.

Order of the words: [layer][row][chunk][panel][8 word rows][128 lanes]; of a paged cache [layer][page][chunk]…, where
a page has some chunks of a sequence, and a table int[rows, pages of a sequence] says which; of a ring the chunks of a
sequence begin anew behind the last. A chunk is 8 word rows of
tokens (32 in fp8, 16 in bf16, 8 in f32); word row r of a panel holds tokens 2r (low half) and 2r + 1 in bf16. Panels
go by head, and a head's lanes side by side: those of its keys and then those of its values, or of whatever its
attention keeps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np

from schedc.spec.mixers import Mixer
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.mla import Mla
from schedc.weights.kept import Kept
from schedc.weights.words import LANES, WORD_ROWS, CacheDtype, join_rows, lanes_up, per_word, split_rows


@dataclass(frozen=True)
class Side:
    """`width` numbers of a head and token, in `lanes` lanes, zeros behind the last."""

    name: str
    width: int
    lanes: int


@dataclass(frozen=True)
class CacheLayout:
    """`layers` layers of `rows` sequences with room for `capacity` tokens each, rounded up to whole chunks."""

    layers: int
    rows: int
    capacity: int
    heads: int
    sides: tuple[Side, ...]
    dtype: CacheDtype
    page_tokens: int = 0
    """Tokens of a page; 0: not paged."""
    pages: int = 0
    ring_tokens: int = 0
    """Whole chunks: a token lies where the one so many later will; 0: every token of the capacity has its place."""

    @property
    def lanes(self) -> int:
        """Lanes of one head, whole panels."""
        return sum(side.lanes for side in self.sides)

    @property
    def panels(self) -> int:
        return self.heads * self.lanes // LANES

    @property
    def chunk_tokens(self) -> int:
        return WORD_ROWS * per_word(self.dtype)

    @property
    def chunk_rows(self) -> int:
        return self.panels * WORD_ROWS

    @property
    def chunks(self) -> int:
        return ceil(self.capacity / self.chunk_tokens)

    @property
    def sequence_rows(self) -> int:
        """Word rows of one sequence in one layer."""
        return (self.ring_tokens // self.chunk_tokens or self.chunks) * self.chunk_rows

    @property
    def word_rows(self) -> int:
        """Word rows of the whole cache."""
        if self.page_tokens:
            return self.layers * self.pages * self.page_rows
        return self.layers * self.rows * self.sequence_rows

    @property
    def page_rows(self) -> int:
        return self.page_tokens // self.chunk_tokens * self.chunk_rows

    def first_row(self, layer: int, row: int) -> int:
        """Of a sequence in a cache that is not paged."""
        return (layer * self.rows + row) * self.sequence_rows

    def rows_of(self, layer: int, row: int, table: np.ndarray | None = None) -> np.ndarray:
        """Where the word rows of a sequence lie in the cache, int[chunks · chunk_rows]; in a ring they are several
        times in the same place."""
        if not self.page_tokens:
            return self.first_row(layer, row) + np.arange(self.chunks * self.chunk_rows) % self.sequence_rows
        assert table is not None
        firsts = (layer * self.pages + np.asarray(table[row])) * self.page_rows
        return (firsts[:, None] + np.arange(self.page_rows)).reshape(-1)[: self.sequence_rows]


def _of_gqa(mixer: Gqa) -> tuple[int, tuple[Side, ...]]:
    """A head of up to 64 has its key and value in one panel, a wider one panels of each."""
    lanes = LANES // 2 if mixer.head_dim <= LANES // 2 else lanes_up(mixer.head_dim)
    return mixer.kv_heads, tuple(Side(name, mixer.head_dim, lanes) for name in ("k", "v"))


def _of_mla(mixer: Mla) -> tuple[int, tuple[Side, ...]]:
    """Absorbed: one head for all, the latent, and the shared key in panels of its own. Expanded: keys and values."""
    if mixer.cache == "expanded":
        widths = {"k": mixer.head_dim, "v": mixer.value_dim}
        return mixer.heads, tuple(Side(name, width, lanes_up(width)) for name, width in widths.items())
    widths = {"latent": mixer.kv_rank, "shared key": mixer.rope_dim}
    return 1, tuple(Side(name, width, lanes_up(width)) for name, width in widths.items())


HEADS_AND_SIDES: dict[str, Callable[..., tuple[int, tuple[Side, ...]]]] = {"gqa": _of_gqa, "mla": _of_mla}


def cache_layout(mixer: Mixer, layers: int, rows: int, capacity: int, dtype: CacheDtype) -> CacheLayout:
    """The cache of `mixer` in the `layers` layers that it has in a run."""
    heads, sides = HEADS_AND_SIDES[mixer.kind](mixer)
    return CacheLayout(layers, rows, capacity, heads, sides, dtype)


class Words(Protocol):
    """A layout of words in HBM."""

    @property
    def word_rows(self) -> int: ...


def empty_cache(layout: Words) -> np.ndarray:
    """int32[word_rows, 128] of zeros."""
    return np.zeros((layout.word_rows, LANES), np.int32)


def cache_words(layout: CacheLayout, kept: Sequence[np.ndarray]) -> np.ndarray:
    """Words of the leading chunks of one sequence in one layer, from f32[tokens, heads, width] a side.

    int32[chunks of the tokens · chunk_rows, 128]; tokens that the last chunk has beyond these are zeros.
    """
    tokens = len(kept[0])
    expected = [(tokens, layout.heads, side.width) for side in layout.sides]
    if tokens > layout.capacity or [part.shape for part in kept] != expected:
        found = ", ".join(f"{side.name} {part.shape}" for side, part in zip(layout.sides, kept, strict=True))
        raise ValueError(f"{found} do not fit {layout}")
    chunks = ceil(tokens / layout.chunk_tokens)
    lanes = np.zeros((chunks * layout.chunk_tokens, layout.heads, layout.lanes), np.float32)
    at = 0
    for side, part in zip(layout.sides, kept, strict=True):
        lanes[:tokens, :, at : at + side.width] = part
        at += side.lanes
    by_panel = lanes.reshape(chunks, layout.chunk_tokens, layout.panels, LANES).transpose(0, 2, 1, 3)
    return join_rows(by_panel, layout.dtype).reshape(-1, LANES)


def write_sequence(
    cache: np.ndarray,
    layout: CacheLayout,
    layer: int,
    row: int,
    kept: Sequence[np.ndarray],
    table: np.ndarray | None = None,
) -> None:
    """Put `cache_words` of `kept` at the beginning of sequence `row` in `layer` of the cache, in place: of a ring the
    last ones that it has room for."""
    words = cache_words(layout, kept)
    places = layout.rows_of(layer, row, table)[: len(words)]
    last = slice(max(0, len(words) - layout.sequence_rows), None)
    cache[places[last]] = words[last]


def read_sequence(
    cache: np.ndarray, layout: CacheLayout, layer: int, row: int, tokens: int, table: np.ndarray | None = None
) -> Kept:
    """f32[tokens, heads, width] a side: the inverse of `write_sequence`, as rounded.

    Of a ring a token that is no more there is what has taken its place, and one that is not yet there what it will
    take the place of.
    """
    words = np.asarray(cache[layout.rows_of(layer, row, table)])
    panels = split_rows(words.reshape(layout.chunks, layout.panels, WORD_ROWS, LANES), layout.dtype)
    lanes = panels.transpose(0, 2, 1, 3).reshape(-1, layout.heads, layout.lanes)
    kept, at = [], 0
    for side in layout.sides:
        kept.append(lanes[:tokens, :, at : at + side.width])
        at += side.lanes
    return tuple(kept)

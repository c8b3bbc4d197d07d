"""The kernel's KV cache in HBM: keys and values as 32-bit words, `int32[rows, 128]`.

Order of the words: [layer][row][chunk][panel][8 word rows][128 lanes]. A chunk is 8 word rows of tokens (16 in
bf16, 8 in f32); word row r of a panel holds tokens 2r (low half) and 2r + 1 in bf16. Panels go by kv head:
one `[k 64 | v 64]` if head_dim ≤ 64, else ceil(head_dim / 128) of k, then as many of v, zeros behind the last
dimension.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from schedc.weights.words import LANES, WORD_ROWS, WordDtype, join_rows, lanes_up, per_word, split_rows


@dataclass(frozen=True)
class CacheLayout:
    """`layers` layers of `rows` sequences with room for `capacity` tokens each, rounded up to whole chunks."""

    layers: int
    rows: int
    capacity: int
    kv_heads: int
    head_dim: int
    dtype: WordDtype

    @property
    def side_lanes(self) -> int:
        """Lanes of k, and of v, of one head."""
        return LANES // 2 if self.head_dim <= LANES // 2 else lanes_up(self.head_dim)

    @property
    def panels(self) -> int:
        return self.kv_heads * 2 * self.side_lanes // LANES

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
        return self.chunks * self.chunk_rows

    @property
    def word_rows(self) -> int:
        """Word rows of the whole cache."""
        return self.layers * self.rows * self.sequence_rows

    def first_row(self, layer: int, row: int) -> int:
        return (layer * self.rows + row) * self.sequence_rows


def empty_cache(layout: CacheLayout) -> np.ndarray:
    """int32[word_rows, 128] of zeros."""
    return np.zeros((layout.word_rows, LANES), np.int32)


def cache_words(layout: CacheLayout, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Words of the leading chunks of one sequence in one layer, from f32[tokens, kv_heads, head_dim] each.

    int32[chunks of the tokens · chunk_rows, 128]; tokens that the last chunk has beyond these are zeros.
    """
    tokens = len(k)
    if tokens > layout.capacity or k.shape != v.shape or k.shape[1:] != (layout.kv_heads, layout.head_dim):
        raise ValueError(f"k {k.shape} and v {v.shape} do not fit {layout}")
    chunks = ceil(tokens / layout.chunk_tokens)
    sides = np.zeros((chunks * layout.chunk_tokens, layout.kv_heads, 2, layout.side_lanes), np.float32)
    sides[:tokens, :, 0, : layout.head_dim] = k
    sides[:tokens, :, 1, : layout.head_dim] = v
    by_panel = sides.reshape(chunks, layout.chunk_tokens, layout.panels, LANES).transpose(0, 2, 1, 3)
    return join_rows(by_panel, layout.dtype).reshape(-1, LANES)


def write_sequence(cache: np.ndarray, layout: CacheLayout, layer: int, row: int, k: np.ndarray, v: np.ndarray) -> None:
    """Put `cache_words` of k and v at the beginning of sequence `row` in `layer` of the cache, in place."""
    words = cache_words(layout, k, v)
    first = layout.first_row(layer, row)
    cache[first : first + len(words)] = words


def read_sequence(
    cache: np.ndarray, layout: CacheLayout, layer: int, row: int, tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """k and v, f32[tokens, kv_heads, head_dim] each: the inverse of `write_sequence`, as rounded."""
    first = layout.first_row(layer, row)
    words = np.asarray(cache[first : first + layout.sequence_rows])
    panels = split_rows(words.reshape(layout.chunks, layout.panels, WORD_ROWS, LANES), layout.dtype)
    sides = panels.transpose(0, 2, 1, 3).reshape(-1, layout.kv_heads, 2, layout.side_lanes)
    return sides[:tokens, :, 0, : layout.head_dim], sides[:tokens, :, 1, : layout.head_dim]

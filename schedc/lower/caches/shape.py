"""Sizes of a cache and of its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.lower.graph import PER_WORD, ceil_div

CACHED_PER_WORD = PER_WORD | {"fp8": 4}
"""Elements of a 32-bit word of a cache."""


def chunk_tokens(dtype: str) -> int:
    """Tokens of 8 word rows."""
    return 8 * CACHED_PER_WORD[dtype]


@dataclass(frozen=True)
class CacheShape:
    """A chunk is the tokens of 8 word rows, `[panel][8]` rows of 512 bytes: what the newest token writes back.

    A tile is `tokens` positions, whole chunks, and what one transfer moves.
    """

    panels: int
    """Panels of 128 lanes that a token takes."""
    dtype: str
    context: int
    tokens: int
    devices: int = 1
    """Devices that have the tiles in turn."""

    @property
    def chunk_tokens(self) -> int:
        return chunk_tokens(self.dtype)

    @property
    def chunk(self) -> int:
        """Rows of a chunk."""
        return self.panels * 8

    @property
    def tile(self) -> int:
        """Rows of a tile."""
        return self.tokens // self.chunk_tokens * self.chunk

    @property
    def max_tiles(self) -> int:
        """Tiles of one sequence in one layer on a device."""
        return ceil_div(ceil_div(self.context, self.tokens), self.devices)

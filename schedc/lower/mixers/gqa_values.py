"""What the results of grouped-query attention mean, by the names of the reference."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.program import Region
from schedc.lower.graph import LANES, StepShape, ceil_div, round_up
from schedc.lower.parts import Place
from schedc.lower.values import Piece, Value, by_head, operand, piece
from schedc.placement.heads import HeadSplit
from schedc.spec.mixers.gqa import Gqa


class HeadValues:
    """`gqa` has the heads of a device. A panel of queries is `block` rows: of one row, or of all if they are tokens."""

    def __init__(self, gqa: Gqa, split: HeadSplit, shape: StepShape, place: Place, block: int) -> None:
        self.gqa, self.split_of, self.place, self.block = gqa, split, place, block
        self.rows, self.tokens = shape.padded_rows, shape.rows_are == "tokens"
        self.panels = ceil_div(gqa.head_dim, LANES)
        # Keys and values of heads of up to half a panel share one, values behind.
        self.behind = LANES // 2 if gqa.head_dim <= LANES // 2 else 0

    def split(self, queries: Region) -> tuple[Value, ...]:
        """Queries, scaled, and the new tokens' keys and values."""
        gqa, buffer, in_cache = self.gqa, self.place.named("kv_row"), 1 if self.behind else 2 * self.panels
        layout = in_cache, round_up(in_cache * gqa.kv_heads, 8), 1
        shard = self.split_of.kv.shard(gqa.head_dim)
        keys = by_head(gqa.kv_heads, gqa.head_dim, *layout, **shard)
        values = by_head(gqa.kv_heads, gqa.head_dim, *layout, 0 if self.behind else self.panels, **shard)
        return (
            Value("attn.queries", queries.storage, self._heads(self.panels, 0)),
            Value("attn.key", buffer, keys),
            Value("attn.value", buffer, self._moved(values)),
        )

    def mixed(self, softmax: Region) -> Value:
        """Weighted sums of values over the sums of weights."""
        sections = self.panels + 2
        weights = tuple(replace(part, panel_step=0) for part in self._heads(sections, self.panels + 1))
        sums = self._moved(self._heads(sections, 0))
        return Value("attn.mixed", softmax.storage, sums, divided_by=weights)

    def joined(self, dtype: str) -> tuple[Value, ...]:
        gqa, buffer = self.gqa, self.place.named("attended")
        shard = self.split_of.query.shard(gqa.head_dim)
        return (operand("attn.attended", buffer, gqa.heads * gqa.head_dim, self.rows, dtype, **shard),)

    def _moved(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        return tuple(replace(part, lane=self.behind) for part in pieces)

    def _heads(self, sections: int, section: int) -> tuple[Piece, ...]:
        """Every query head from a section on, of `sections` a row or of all rows."""
        gqa, group = self.gqa, self.gqa.heads // self.gqa.kv_heads
        shard = self.split_of.query.shard(gqa.head_dim)

        def row(head: int) -> int:
            return head * self.rows if self.tokens else head // group * round_up(group, 8) + head % group

        return tuple(
            piece(
                head * gqa.head_dim,
                gqa.head_dim,
                section * self.block + row(head),
                1 if self.tokens else sections * self.block,
                self.block,
                **shard,
            )
            for head in range(gqa.heads)
        )

"""What the results of latent attention mean, by the names of the reference."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.program import Region
from schedc.lower.graph import LANES, StepShape, ceil_div, round_up
from schedc.lower.parts import Place
from schedc.lower.values import Piece, Value, by_head, operand, operand_heads, panels
from schedc.placement.split import Split
from schedc.spec.mixers.mla import Mla


class LatentValues:
    """Of a device's heads. Queries and softmaxes lie head by head below each other, of every row a block of its own;
    where rows are `tokens` the rows of a head lie below each other."""

    def __init__(self, mla: Mla, split: Split, shape: StepShape, place: Place, dtype: str) -> None:
        self.mla, self.split, self.place, self.dtype = mla, split, place, dtype
        self.rows, self.heads, self.tokens = shape.padded_rows, split.each, shape.rows_are == "tokens"
        self.latent_panels, self.key_panels = ceil_div(mla.kv_rank, LANES), ceil_div(mla.rope_dim, LANES)

    def _shard(self, width: int) -> dict[str, int]:
        return {"step": 0, "every": 1, "ring": 1} | self.split.shard(width)

    def token(self) -> tuple[Value, ...]:
        """The latent, normalised, and the shared key, turned, of the new tokens."""
        mla, buffer = self.mla, self.place.named("kv_row")
        stride = round_up(self.latent_panels + self.key_panels, 8)
        return (
            Value("attn.latent", buffer, (Piece(0, mla.kv_rank, 0, stride, 1),)),
            Value("attn.shared_key", buffer, (Piece(0, mla.rope_dim, self.latent_panels, stride, 1),)),
        )

    def queries(self) -> tuple[Value, ...]:
        """What meets latents, and, turned, what meets shared keys."""
        nope = operand_heads(
            "attn.q_nope",
            self.place.named("q_nope"),
            self.heads,
            self.mla.nope_dim,
            self.rows,
            self.dtype,
            **self._shard(self.mla.nope_dim),
        )
        return nope, self._panels("attn.q_rope", "q_rope", self.mla.rope_dim)

    def _panels(self, meaning: str, buffer: str, width: int) -> Value:
        """f32[head][rows, width], each in whole panels."""
        size = ceil_div(width, LANES) * self.rows
        pieces = by_head(self.heads, width, size, 1, self.rows, **self._shard(width))
        return Value(meaning, self.place.named(buffer), pieces)

    def absorbed(self) -> tuple[Value, ...]:
        return (self._panels("attn.q_absorbed", "q_absorbed", self.mla.kv_rank),)

    def gathered(self, out: Region) -> tuple[Value, ...]:
        """Absorbed and turned queries side by side, scaled."""
        rank, rope = self.mla.kv_rank, self.mla.rope_dim
        sections = self.latent_panels + self.key_panels
        latents, keys = (
            self._heads(width, sections, first) for width, first in ((rank, 0), (rope, self.latent_panels))
        )
        shard = self._shard(rank + rope)

        def placed(pieces: tuple[Piece, ...], after: int) -> tuple[Piece, ...]:
            return tuple(
                replace(piece, first=head * (rank + rope) + after, step=shard["step"])
                for head, piece in enumerate(pieces)
            )

        return (Value("attn.queries", out.storage, placed(latents, 0) + placed(keys, rank)),)

    def _heads(self, width: int, sections: int, section: int) -> tuple[Piece, ...]:
        """`width` columns of every head from a section on, of `sections` a row or of all rows."""
        if self.tokens:
            block = self.heads * self.rows
            layout = self.rows, 1, block
        else:
            block = round_up(self.heads, 8)
            layout = 1, sections * block, block
        return by_head(self.heads, width, *layout, section * block, **self._shard(width))

    def mixed(self, softmax: Region) -> Value:
        """Weighted sums of latents over the sums of weights."""
        return self._over_weights("attn.mixed_latents", softmax.storage, self.mla.kv_rank)

    def _over_weights(self, meaning: str, buffer: str, width: int) -> Value:
        """`width` columns a head of a softmax: the weighted sum, then the maximum and the sum of the weights."""
        panels = ceil_div(width, LANES)
        weights = self._heads(width, panels + 2, panels + 1)
        divisors = tuple(replace(piece, panel_step=0) for piece in weights)
        return Value(meaning, buffer, self._heads(width, panels + 2, 0), divided_by=divisors)

    def outputs(self) -> tuple[Value, ...]:
        rank, buffer = self.mla.kv_rank, self.place.named("latents")
        shard = self._shard(rank)
        return (operand_heads("attn.mixed_latents", buffer, self.heads, rank, self.rows, self.dtype, **shard),)

    def expanded(self) -> tuple[Value, ...]:
        return (self._panels("attn.values", "values", self.mla.value_dim),)

    def joined(self) -> tuple[Value, ...]:
        width, buffer = self.mla.value_dim, self.place.named("attended")
        shard = self._shard(width)
        return (operand("attn.attended", buffer, self.heads * width, self.rows, self.dtype, **shard),)


class ExpandedValues(LatentValues):
    """Where the cache has keys and values of every head."""

    def latent(self) -> tuple[Value, ...]:
        """The new tokens' latents, normalised, and their shared keys, turned."""
        mla, named = self.mla, self.place.named
        return (
            operand("attn.latent", named("latent"), mla.kv_rank, self.rows, self.dtype),
            panels("attn.shared_key", named("shared_key"), mla.rope_dim, self.rows),
        )

    def heads_of_token(self) -> tuple[Value, ...]:
        """What the cache keeps of the new tokens, head by head, and their queries, turned and scaled."""
        mla, buffer = self.mla, self.place.named("kv_row")
        key_panels, value_panels = ceil_div(mla.head_dim, LANES), ceil_div(mla.value_dim, LANES)
        each = key_panels + value_panels
        layout = each, round_up(each * self.heads, 8), 1
        keys = by_head(self.heads, mla.head_dim, *layout, **self._shard(mla.head_dim))
        values = by_head(self.heads, mla.value_dim, *layout, key_panels, **self._shard(mla.value_dim))
        return (
            Value("attn.key", buffer, keys),
            Value("attn.value", buffer, values),
            Value("attn.queries", self.place.named("q"), self._heads(mla.head_dim, key_panels, 0)),
        )

    def mixed_values(self) -> Value:
        return self._over_weights("attn.values", self.place.named("softmax"), self.mla.value_dim)

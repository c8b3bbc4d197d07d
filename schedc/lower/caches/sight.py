"""Which earlier positions a token sees."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Expr, floordiv, maximum, mul, sub


@dataclass(frozen=True)
class Sight:
    """All positions up to a token's own; of these the last `window`, or those of its own `chunk`."""

    window: int | None = None
    chunk: int | None = None

    @property
    def limited(self) -> bool:
        return self.window is not None or self.chunk is not None

    def lowest(self, position: Expr) -> Expr:
        """The first position in sight of `position`; below 0 where a window reaches before the sequence."""
        if self.chunk is not None:
            return mul(floordiv(position, self.chunk), self.chunk)
        assert self.window is not None
        return sub(position, self.window - 1)

    def first_tile(self, position: Expr, tokens: int) -> Expr:
        """The tile of the first position in sight."""
        lowest = self.lowest(position)
        return floordiv(lowest if self.chunk is not None else maximum(lowest, 0), tokens)

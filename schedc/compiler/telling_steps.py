"""Which steps of a kernel show most: positions on both sides of every border, and rows that do not count."""

from __future__ import annotations

from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec

PositionsAndActive = tuple[tuple[int, ...], tuple[bool, ...]]


def telling_steps(spec: ModelSpec, shape: StepShape, kv_tokens: int) -> list[PositionsAndActive]:
    """(positions, active) of the steps that show most: borders of cache tiles, of windows and of the context."""
    order = _borders(spec, shape, kv_tokens)
    return _by_token(order, shape) if shape.rows_are == "tokens" else _by_sequence(order, shape)


def _borders(spec: ModelSpec, shape: StepShape, kv_tokens: int) -> list[int]:
    borders = {0, 1, shape.context - 1}
    for border in (kv_tokens, 2 * kv_tokens, 3 * kv_tokens):
        borders |= {border - 1, border}
    for at in spec.iter_layers():
        window = getattr(at.block.mixer, "window", None)
        if window is not None:
            borders |= {window - 1, window, window + kv_tokens - 1, window + kv_tokens}
    return sorted(border for border in borders if 0 <= border < shape.context)


def _by_token(order: list[int], shape: StepShape) -> list[PositionsAndActive]:
    """Tokens on both sides of every border, the last one of them inactive every other time.

    The last steps go on behind some of the tokens of the one before, from nothing, and are inactive.
    """
    rows, steps = shape.rows, []

    def step(first: int, count: int) -> PositionsAndActive:
        active = max(0, min(count, shape.context - first))
        return tuple(range(first, first + rows)), tuple(row < active for row in range(rows))

    for number, first in enumerate(sorted({max(0, border - rows // 2) for border in order})):
        steps.append(step(first, rows - number % 2 if rows > 1 else 1))
    accepted = steps[-2:][0][0][0] + rows // 2
    return [*steps, step(accepted, rows), step(0, 1), step(accepted, 0)]


def _by_sequence(order: list[int], shape: StepShape) -> list[PositionsAndActive]:
    """Every row stands elsewhere and some are inactive. The last step goes on from the one before it, with every other
    row inactive; a single row has one step more, in which it is inactive.
    """
    rows = shape.rows
    steps = []
    for first in range(0, max(len(order), rows), rows):
        positions = tuple(order[(first + row) % len(order)] for row in range(rows))
        steps.append((positions, tuple(rows == 1 or (first // rows + row) % 4 != 3 for row in range(rows))))
    after = tuple(min(position + 1, shape.context - 1) for position in steps[-1][0])
    steps.append((after, tuple(row % 2 == 0 for row in range(rows))))
    return [*steps, (after, (False,))] if rows == 1 else steps

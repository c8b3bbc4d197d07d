"""What a step means for who uses and who pays: tokens a second, and dollars a million tokens.

A step of sequences gives each of them a token. A step whose rows are tokens of one sequence verifies a draft: it gives
`accept` tokens on average, the one that the model adds itself among them, after `draft_us` for the draft.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Serving:
    """Rates of a step and its price. `tokens_per_s` is of all sequences together."""

    step_us: float
    """With the call, and the draft."""
    tokens_per_s: float
    tokens_per_s_per_sequence: float
    tokens_per_s_per_chip: float
    dollars_per_million_tokens: float | None


def serving(
    step_us: float,
    sequences: int,
    chips: int,
    accept: float = 1.0,
    draft_us: float = 0.0,
    call_us: float = 0.0,
    price: float | None = None,
) -> Serving:
    """`step_us` of the kernel, `call_us` that every step's share of a call adds, `price` in dollars a chip-hour."""
    whole = step_us + call_us + draft_us
    each = accept / whole * 1e6
    total = each * sequences
    dollars = None if price is None else round(price * chips / 3600.0 / total * 1e6, 4)
    return Serving(round(whole, 3), round(total, 2), round(each, 2), round(total / chips, 3), dollars)

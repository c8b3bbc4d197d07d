"""An estimate of the time to read a prompt: a roofline, not a schedule. schedc makes decode steps, no prefill kernels.

For `tokens` tokens of each of `sequences` prompts, read at once:

- computation: two FLOP a weight of every projection that a token goes through (of routed experts those it chooses, of
  the head that of the last token alone), and the mixers' own: scores and values over half of the tokens before it (or
  its window), of a delta rule the three products with its state. At the MXU's peak, mxus · columns² multiply-adds a
  cycle, which is what the dot formula gives for 64 rows; all formats at the rate of bf16.
- HBM: every weight of a device once, and the caches of the prompts written once.
- exchanges: two all-reduces of bf16[tokens, hidden] a layer, at a device's rate over all its links, latency left out.

They are taken to overlap: the estimate is the largest. All devices are taken to have equal parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from schedc.ir.program import ROW_BYTES, Program
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import Block, ModelSpec
from schedc.target.target import Target

ALL_REDUCES_A_LAYER = 2
WIRE_BYTES = 2


@dataclass(frozen=True)
class Prefill:
    """µs on each device if nothing else limited it; the prompt takes the largest."""

    compute_us: float
    hbm_us: float
    exchange_us: float

    @property
    def time_us(self) -> float:
        return max(self.compute_us, self.hbm_us, self.exchange_us)

    @property
    def binding(self) -> str:
        named = {"compute": self.compute_us, "hbm": self.hbm_us, "exchange": self.exchange_us}
        return max(named.items(), key=lambda item: item[1])[0]


def prefill(
    spec: ModelSpec, program: Program, target: Target, tokens: int, sequences: int, context: int, clock_ghz: float
) -> Prefill:
    """Of `sequences` prompts of `tokens` tokens; `program` is the decode step, with caches of `context` tokens."""
    every, devices, cost = tokens * sequences, program.devices, target.cost
    flop = every * flop_per_token(spec, tokens) + sequences * 2 * spec.hidden * spec.vocab
    capability = target.capability
    flop_per_ns = 2 * capability.mxus * capability.mxu_columns**2 * clock_ghz
    weights = sum(a.rows for a in program.arrays if a.role == "weight" and a.name != "embedding") * ROW_BYTES
    caches = sum(a.rows for a in program.arrays if a.role == "state") * ROW_BYTES * min(1.0, tokens / context)
    exchanged = 0.0
    if devices > 1:
        reduced = 2 * (devices - 1) / devices * every * spec.hidden * WIRE_BYTES
        exchanged = ALL_REDUCES_A_LAYER * spec.num_layers * reduced / cost.links_gb_s
    return Prefill(
        compute_us=flop / devices / flop_per_ns / 1e3,
        hbm_us=(weights + caches) / cost.hbm_stream_gb_s / 1e3,
        exchange_us=exchanged / 1e3,
    )


def flop_per_token(spec: ModelSpec, tokens: int) -> float:
    """Of all layers, for the mean of `tokens` tokens from the first on."""
    return sum(
        run.repeat * (2 * _weights(block, spec) + MIXERS[block.mixer.kind](block.mixer, tokens))
        for run in spec.layers
        for block in run.pattern
    )


def _weights(block: Block, spec: ModelSpec) -> float:
    """Weights of a layer's projections that a token is multiplied by."""
    total = 0.0
    for name, shape in block.parameters(spec.hidden).items():
        if len(shape) < 2 or name.endswith("_conv"):
            continue
        share = 1.0
        if isinstance(block.feed_forward, Moe) and name.startswith("feed_forward.experts."):
            if len(shape) < 3:
                continue
            share = block.feed_forward.top_k / block.feed_forward.experts
        total += share * prod(shape)
    return total


def _gqa(gqa: Gqa, tokens: int) -> float:
    return 4.0 * gqa.heads * gqa.head_dim * _in_sight(tokens, gqa.window or gqa.chunk)


def _mla(mla: Mla, tokens: int) -> float:
    return 2.0 * mla.heads * (mla.head_dim + mla.value_dim) * _in_sight(tokens, None)


def _kda(kda: Kda, tokens: int) -> float:
    return 6.0 * kda.heads * kda.key_dim * kda.value_dim


def _gated_delta(mixer: GatedDelta, tokens: int) -> float:
    return 6.0 * mixer.value_heads * mixer.key_dim * mixer.value_dim


def _in_sight(tokens: int, window: int | None) -> float:
    """Mean number of tokens that a token sees, itself included: 1, 2 … up to the window."""
    if window is None or window >= tokens:
        return (tokens + 1) / 2
    return (window * (window + 1) / 2 + (tokens - window) * window) / tokens


MIXERS: Mapping[str, Callable[..., float]] = {"gqa": _gqa, "mla": _mla, "kda": _kda, "gated_delta": _gated_delta}
"""FLOP a token of a layer's mixer beside its projections."""

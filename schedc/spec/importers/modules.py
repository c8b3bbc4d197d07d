"""What the modules with projections are called in a checkpoint: quantisation names its formats by module."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_GATED = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class FeedForwardModules:
    """Of a family; `expert` stands for all experts."""

    dense: str = "mlp"
    expert: str = "mlp.experts.0"
    expert_projections: tuple[str, ...] = _GATED
    shared: str = "mlp.shared_experts"


_QWEN = FeedForwardModules(shared="mlp.shared_expert")

FEED_FORWARDS: dict[str, FeedForwardModules] = {
    "kimi_linear": FeedForwardModules(
        expert="block_sparse_moe.experts.0",
        expert_projections=("w1", "w3", "w2"),
        shared="block_sparse_moe.shared_experts",
    ),
    "qwen3_5_moe_text": _QWEN,
    "qwen3_next": _QWEN,
}
"""Model types whose names are others than those of most families."""


def modules_of(block: dict[str, Any], model_type: str) -> Iterator[tuple[str, str]]:
    """(weight family, module inside its layer) of every projection of a block but routers, latents and decays.

    Those are not quantised in any checkpoint known, also where the patterns of one would match them (Kimi K3's).
    """
    mixer, feed_forward = block["mixer"], block["feed_forward"]
    yield from (("attention", module) for module in _MIXERS[mixer["kind"]](mixer))
    names = FEED_FORWARDS.get(model_type, FeedForwardModules())
    if feed_forward["kind"] == "dense":
        yield from (("dense", f"{names.dense}.{projection}") for projection in _GATED)
        return
    yield from (("experts", f"{names.expert}.{projection}") for projection in names.expert_projections)
    if feed_forward.get("shared"):
        yield from (("shared", f"{names.shared}.{projection}") for projection in _GATED)


def _gqa(mixer: dict[str, Any]) -> list[str]:
    return [f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj")]


def _mla(mixer: dict[str, Any]) -> list[str]:
    queries = ["q_proj"] if mixer["q_rank"] is None else ["q_a_proj", "q_b_proj"]
    gate = ["g_proj"] if mixer.get("output_gate") else []
    return [f"self_attn.{name}" for name in (*queries, "kv_a_proj_with_mqa", "kv_b_proj", *gate, "o_proj")]


def _kda(mixer: dict[str, Any]) -> list[str]:
    gates = ["g_proj"] if mixer["gate_rank"] is None else ["g_a_proj", "g_b_proj"]
    return [f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", *gates, "o_proj")]


def _gated_delta(mixer: dict[str, Any]) -> list[str]:
    return [f"linear_attn.{name}" for name in ("in_proj_qkv", "in_proj_z", "out_proj")]


_MIXERS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "gqa": _gqa,
    "mla": _mla,
    "kda": _kda,
    "gated_delta": _gated_delta,
}

"""The pieces that the families of dense decoders share. All of them return plain data, validated at the end."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.runs import runs

_MOST_LAYERS = 10_000
ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}


def model(
    config: Config,
    name: str,
    layers: list[dict[str, Any]],
    norm: dict[str, Any],
    tied: bool,
    *,
    positions_key: str = "max_position_embeddings",
) -> dict[str, Any]:
    """The spec around `layers`; `tied` is the family's default for `tie_word_embeddings`."""
    return {
        "name": name,
        "hidden": config.required("hidden_size", int),
        "vocab": config.required("vocab_size", int),
        "max_position": config.required(positions_key, int),
        "eos_token_ids": _eos_token_ids(config),
        "embedding": {"tied": config.default("tie_word_embeddings", bool, tied)},
        "layers": runs(layers),
        "final_norm": norm,
    }


def attention(config: Config, *, head_dim: int | None = None, grouped: bool = True) -> dict[str, Any]:
    """Heads of a gqa mixer. `head_dim` is the family's default; None: hidden_size // num_attention_heads.

    A family that is not `grouped` by default has as many kv heads as heads if its config says nothing.
    """
    heads = config.required("num_attention_heads", int)
    if heads < 1:
        config.refuse("num_attention_heads", f"{heads} heads; at least 1")
        heads = 1
    given = config.optional("head_dim", int)
    if given is None:
        given = head_dim or config.required("hidden_size", int) // heads
    return {
        "kind": "gqa",
        "heads": heads,
        "kv_heads": (
            config.required("num_key_value_heads", int)
            if grouped
            else config.default("num_key_value_heads", int, heads)
        ),
        "head_dim": given,
    }


def rms_norm(config: Config, *, unit_offset: bool = False) -> dict[str, Any]:
    norm: dict[str, Any] = {"kind": "rms", "eps": config.required("rms_norm_eps", float)}
    return norm | ({"unit_offset": True} if unit_offset else {})


def dense(
    config: Config,
    *,
    gated: bool,
    activation_key: str = "hidden_act",
    bias: bool = False,
    width_key: str = "intermediate_size",
) -> dict[str, Any]:
    activation = config.required(activation_key, str)
    if activation not in ACTIVATIONS and isinstance(config.data.get(activation_key), str):
        config.refuse(activation_key, f"activation {activation!r} is not supported; known: {', '.join(ACTIVATIONS)}")
    return {
        "kind": "dense",
        "width": config.required(width_key, int),
        "gated": gated,
        "activation": ACTIVATIONS.get(activation, "silu"),
        "bias": {"up": bias, "gate": bias and gated, "down": bias},
    }


def layer_count(config: Config) -> int:
    layers = config.required("num_hidden_layers", int)
    if not 1 <= layers <= _MOST_LAYERS:
        config.refuse("num_hidden_layers", f"{layers} layers; 1 to {_MOST_LAYERS}")
        return 1
    return layers


def layer_windows(config: Config, default: list[str], window: int | None) -> list[int | None]:
    """Each layer's window, from `layer_types` (sliding_attention or full_attention) or the family's `default`."""
    types = _layer_types(config, default)
    if window is None and "sliding_attention" in types:
        config.refuse("sliding_window", "no window, and some layers are of kind sliding_attention")
    return [window if kind == "sliding_attention" else None for kind in types]


def _layer_types(config: Config, default: list[str]) -> list[str]:
    types = config.raw("layer_types")
    if types is None:
        return default
    known = {"sliding_attention", "full_attention"}
    if not isinstance(types, list) or len(types) != len(default):
        config.refuse("layer_types", f"must be a list with one entry for each of the {len(default)} layers")
        return default
    strange = sorted({str(entry) for entry in types} - known)
    if strange:
        config.refuse("layer_types", f"layers of kind {', '.join(strange)} are not supported")
        return default
    return types


def _eos_token_ids(config: Config) -> list[int]:
    tokens = config.raw("eos_token_id")
    if tokens is None:
        return []
    tokens = tokens if isinstance(tokens, list) else [tokens]
    if not all(type(token) is int for token in tokens):
        config.refuse("eos_token_id", "must be a token id or a list of them")
        return []
    return tokens

"""Small specs with the features of dense decoders."""

from typing import Any

from schedc.spec.model import ModelSpec

RMS = {"kind": "rms", "eps": 1e-5}
BARE = RMS | {"weight": False}
LAYER = {"kind": "layer", "eps": 1e-5, "bias": True}


def small_spec(
    mixer: dict[str, Any] | None = None,
    feed_forward: dict[str, Any] | None = None,
    block: dict[str, Any] | None = None,
    layers: list[dict[str, Any]] | None = None,
    **model: Any,
) -> ModelSpec:
    """Three equal layers, 24 wide, of 4 heads over 2 kv heads of 8; the arguments change or add keys."""
    default = {
        "mixer": {"kind": "gqa", "heads": 4, "kv_heads": 2, "head_dim": 8, "rope": {"theta": 100.0}} | (mixer or {}),
        "feed_forward": {"kind": "dense", "width": 40, "gated": True, "activation": "silu"} | (feed_forward or {}),
        "norm": RMS,
    } | (block or {})
    return ModelSpec.model_validate(
        {
            "name": "small",
            "hidden": 24,
            "vocab": 50,
            "max_position": 64,
            "embedding": {"tied": True},
            "layers": layers or [{"repeat": 3, "pattern": [default]}],
            "final_norm": default["norm"],
        }
        | model
    )


def two_runs() -> ModelSpec:
    """A run of one layer, then two trips of a pattern of two different layers."""
    first = small_spec().model_dump(mode="json")["layers"][0]["pattern"][0]
    local = small_spec(mixer={"window": 3, "heads": 6, "kv_heads": 3}).model_dump(mode="json")["layers"][0]["pattern"][
        0
    ]
    return small_spec(layers=[{"repeat": 1, "pattern": [local]}, {"repeat": 2, "pattern": [local, first]}])


def latent_spec(mixer: dict[str, Any] | None = None, **model: Any) -> ModelSpec:
    """Three equal layers of latent attention: 3 heads of 12 + 4 dimensions, values of 8, latents of 20."""
    plain = small_spec(**model).model_dump(mode="json", exclude_none=True)
    block = plain["layers"][0]["pattern"][0]
    block["mixer"] = {
        "kind": "mla", "heads": 3, "q_rank": 16, "kv_rank": 20, "nope_dim": 12, "rope_dim": 4, "value_dim": 8,
        "q_norm": RMS, "kv_norm": RMS, "rope": {"theta": 100.0, "pairs": "adjacent"},
    } | (mixer or {})  # fmt: skip
    return ModelSpec.model_validate(plain)


YARN = {"kind": "yarn", "factor": 4.0, "original_max_position": 16}
LLAMA3 = {
    "kind": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position": 16,
}

FEATURES: dict[str, ModelSpec] = {
    "plain": small_spec(),
    "two runs": two_runs(),
    "no rope": small_spec(mixer={"rope": None}),
    "adjacent pairs": small_spec(mixer={"rope": {"theta": 100.0, "pairs": "adjacent"}}),
    "partial rotation": small_spec(mixer={"rope": {"theta": 100.0, "rotary_dim": 4}}),
    "partial adjacent": small_spec(mixer={"rope": {"theta": 100.0, "rotary_dim": 6, "pairs": "adjacent"}}),
    "linear scaling": small_spec(mixer={"rope": {"theta": 100.0, "scaling": {"kind": "linear", "factor": 2.0}}}),
    "llama3 scaling": small_spec(mixer={"rope": {"theta": 100.0, "scaling": LLAMA3}}),
    "yarn scaling": small_spec(mixer={"rope": {"theta": 100.0, "scaling": YARN}}),
    "qk-norm": small_spec(mixer={"qk_norm": RMS | {"unit_offset": True}}),
    "qk layer norm": small_spec(mixer={"qk_norm": LAYER}),
    "qk-norm over heads": small_spec(mixer={"qk_norm": RMS, "qk_norm_over": "heads"}),
    "qk-norm after rope": small_spec(mixer={"qk_norm": RMS, "qk_norm_after_rope": True}),
    "qk-norm without weight": small_spec(mixer={"qk_norm": BARE, "scale": 2.0}),
    "sinks": small_spec(mixer={"sinks": True}),
    "output gate": small_spec(mixer={"output_gate": True}),
    "output norm": small_spec(mixer={"output_norm": RMS}),
    "gated norm without weight": small_spec(mixer={"output_norm": BARE, "output_gate": True, "head_dim": 80}),
    "chunks": small_spec(mixer={"chunk": 6}),
    "query temperature": small_spec(mixer={"temperature": {"scale": 0.4, "interval": 5}, "rope": None}),
    "attention biases": small_spec(mixer={"bias": {"q": True, "k": True, "v": True, "o": True}}),
    "window": small_spec(mixer={"window": 4}),
    "soft cap": small_spec(mixer={"soft_cap": 0.5}),
    "score scale": small_spec(mixer={"scale": 1.0}),
    "multi-query": small_spec(mixer={"kv_heads": 1}),
    "multi-head": small_spec(mixer={"kv_heads": 4}),
    "wide heads": small_spec(mixer={"head_dim": 80}),
    "layer norm": small_spec(block={"norm": LAYER}),
    "unit offset": small_spec(block={"norm": RMS | {"unit_offset": True}}),
    "post norm": small_spec(block={"placement": "post"}),
    "sandwich norm": small_spec(block={"placement": "sandwich"}),
    "untied head": small_spec(embedding={"tied": False}, head={"bias": True}),
    "multipliers": small_spec(
        embedding={"tied": True, "multiplier": 4.0},
        head={"multiplier": 0.25},
        residual={"kind": "plain", "multiplier": 0.5},
    ),
    "gated residual": small_spec(residual={"kind": "gated", "temperature": 0.3, "floor": 0.25}),
    "gated residual of normalised outputs": small_spec(
        block={
            "norm": RMS | {"unit_offset": True},
            "placement": "sandwich",
            "output_norm": BARE,
            "feed_forward_output_norm": RMS | {"scale_first": True},
        },
        residual={"kind": "gated"},
    ),
    "embedding norm": small_spec(embedding={"tied": False, "norm": LAYER}),
    "norms without weight": small_spec(
        block={"norm": RMS, "output_norm": BARE, "placement": "sandwich"}, embedding={"tied": True, "norm": BARE}
    ),
    "clamped gate": small_spec(feed_forward={"activation": "swiglu_clamped", "limit": 0.3}),
    "logit soft cap": small_spec(head={"soft_cap": 2.0}),
    "feed-forward biases": small_spec(feed_forward={"bias": {"gate": True, "up": True, "down": True}}),
    "plain feed-forward": small_spec(feed_forward={"gated": False, "activation": "gelu_tanh", "bias": {"up": True}}),
    "gelu": small_spec(feed_forward={"activation": "gelu"}),
    "relu": small_spec(feed_forward={"activation": "relu"}),
    "relu2": small_spec(feed_forward={"gated": False, "activation": "relu2"}),
}

BARE = RMS | {"weight": False}
LATENT: dict[str, ModelSpec] = {
    "latent attention": latent_spec(),
    "latent, queries at once": latent_spec({"q_rank": None, "q_norm": None}),
    "latent, no rope": latent_spec({"rope": None}),
    "latent, halves": latent_spec({"rope": {"theta": 100.0, "scaling": YARN}, "scale": 0.5, "kv_norm": BARE}),
    "latent, output gate": latent_spec({"output_gate": True}),
    "latent, odd sizes": latent_spec({"heads": 5, "nope_dim": 7, "value_dim": 11, "rope_dim": 6, "kv_rank": 37}),
}

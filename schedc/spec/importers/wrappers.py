"""Multimodal configs: the text model inside is imported, the rest is left out, and the import says so."""

from typing import Any

from schedc.spec.importers.config import Config

_TOWERS = {"vision_config": "the vision tower", "audio_config": "the audio tower"}

_QWEN = frozenset(
    {"image_token_id", "language_model_only", "video_token_id", "vision_end_token_id", "vision_start_token_id"}
)

WRAPPERS: dict[str, frozenset[str]] = {
    "gemma3": frozenset({"boi_token_index", "eoi_token_index", "image_token_index", "mm_tokens_per_image"}),
    "kimi_k25": frozenset(
        {"ignore_index", "media_placeholder_token_id", "use_unified_vision_chunk", "video_placeholder"}
    ),
    "kimi_k3": frozenset({"ignore_index", "image_placeholder", "media_placeholder_token_id"}),
    "llama4": frozenset({"boi_token_index", "eoi_token_index", "image_token_index"}),
    "muse_spark": frozenset(
        {
            "audio_token_id", "image_token_id", "out_hidden_size", "projector_hidden_act", "projector_hidden_size",
            "video_token_id",
        }
    ),
    "qwen3_5": _QWEN,
    "qwen3_5_moe": _QWEN,
}  # fmt: skip
"""Model type with a `text_config` → the keys beside it that only the other towers and their tokens read."""

_SHARED = ("eos_token_id", "quantization_config", "tie_word_embeddings")
"""Keys of the text model that may stand beside `text_config`."""


def text_model(outer: Config) -> Config | None:
    """The config of the text model in a wrapper of a known type; None: it is no such wrapper.

    Faults of the wrapper's own keys are in `outer`.
    """
    kind, inner = outer.data.get("model_type"), outer.data.get("text_config")
    if not isinstance(kind, str) or kind not in WRAPPERS or not isinstance(inner, dict):
        return None
    outer.ignore("text_config", *WRAPPERS[kind])
    for key, tower in _TOWERS.items():
        if outer.raw(key):
            outer.leave_out(key, f"{tower} is not imported, only the text model")
    outer.only_architectures("ForConditionalGeneration", "ForCausalLM")
    return Config(inner | _from_outside(outer, inner), outer.source, prefix="text_config.")


def _from_outside(outer: Config, inner: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for key in _SHARED:
        value = outer.raw(key)
        if value is None:
            continue
        if inner.get(key) is None:
            found[key] = value
        elif inner[key] != value:
            outer.refuse(key, f"{value!r} disagrees with text_config.{key} {inner[key]!r}")
    return found

"""The same model with other caches of the layers that see a window or chunks."""

from __future__ import annotations

from schedc.errors import UserError
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import ModelSpec
from schedc.spec.storage import WindowCache


def sees_windows(spec: ModelSpec) -> bool:
    """Whether a layer does."""
    mixers = [at.block.mixer for at in spec.iter_layers() if isinstance(at.block.mixer, Gqa)]
    return any(mixer.window is not None or mixer.chunk is not None for mixer in mixers)


def with_window_cache(spec: ModelSpec, cache: WindowCache) -> ModelSpec:
    """Raises UserError for a model without a window, and for what goes with no ring."""
    if not sees_windows(spec):
        raise UserError(f"{spec.name} has no layer with a window or chunks; leave the window cache out")
    kv = spec.kv.model_copy(update={"window": cache})
    problems = [f"kv.{name}: {text}" for name, text in kv.problems()]
    if problems:
        raise UserError("\n  ".join([f"{spec.name}:", *problems]))
    return spec.model_copy(update={"kv": kv})

"""The same model with another cache of its latent attention."""

from __future__ import annotations

from typing import get_args

from schedc.errors import UserError
from schedc.spec.mixers.mla import LatentCache, Mla
from schedc.spec.model import ModelSpec


def other_latent_caches(spec: ModelSpec) -> tuple[LatentCache, ...]:
    """Those that not all of its latent attention has: none of a model without."""
    mixers = (at.block.mixer for at in spec.iter_layers())
    found = {mixer.cache for mixer in mixers if isinstance(mixer, Mla)}
    return tuple(cache for cache in get_args(LatentCache) if found and found != {cache})


def with_latent_cache(spec: ModelSpec, cache: LatentCache) -> ModelSpec:
    """Raises UserError for a model without latent attention."""
    data = spec.model_dump(mode="json")
    mixers = [block["mixer"] for run in data["layers"] for block in run["pattern"]]
    latent = [mixer for mixer in mixers if mixer["kind"] == "mla"]
    if not latent:
        kinds = ", ".join(sorted({mixer["kind"] for mixer in mixers}))
        raise UserError(f"{spec.name} has no latent attention, only {kinds}; leave the latent cache out")
    for mixer in latent:
        mixer["cache"] = cache
    return ModelSpec.model_validate(data)

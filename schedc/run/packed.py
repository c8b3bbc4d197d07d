"""Packed weights for running, kept in the cache folder so that the next run need not pack."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from schedc.cache.folder import cache_folder
from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.layout import Layout, layouts_hash, on_device
from schedc.weights.pack import Progress, pack
from schedc.weights.packed_file import load_packed
from schedc.weights.source import WeightSource


def packed_weights(
    layouts: Sequence[Layout], source: WeightSource, spec: ModelSpec, progress: Progress = lambda done, total: None
) -> Callable[[int], Mapping[str, np.ndarray]]:
    """The arrays of `layouts` on a device, by name, memory-mapped.

    They are packed when they are first asked for, if these weights are not there in this layout.
    """

    @cache
    def on(device: int) -> Mapping[str, np.ndarray]:
        mine = [on_device(layout, device) for layout in layouts]
        path = packed_path(mine, source, spec)
        if path.exists():
            try:
                return load_packed(path, mine, verify=False)
            except UserError:
                path.unlink()
        pack(mine, for_kernel(source, spec), path, progress)
        return load_packed(path, mine, verify=False)

    return on


def packed_path(layouts: Sequence[Layout], source: WeightSource, spec: ModelSpec) -> Path:
    """One file for each layout of each source."""
    key = sha256(f"{layouts_hash(layouts)} {source.identity()}".encode()).hexdigest()[:16]
    return cache_folder() / spec.name / f"{key}.packed"

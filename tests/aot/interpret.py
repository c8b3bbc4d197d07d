"""Interpret the kernel `layers` in a process of its own: `python interpret.py kernel.py`; prints JSON by mode."""

import json
import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.load import load_kernel

POSITION, TILE, WEIGHT = 37, 16, 64


def inputs(layers: int, cache_rows: int) -> list[np.ndarray]:
    """Small integers, so that every sum is exact in bf16; the first layer's weight moves lane i to lane i + 1."""
    values = np.random.default_rng(0)
    moved = np.roll(np.eye(128, dtype=np.float32), 1, axis=1).view(np.uint32) >> 16  # bf16 bits
    words = (moved[0::2] | moved[1::2] << 16).astype(np.int32)
    weights = np.concatenate([words, np.zeros(((layers - 1) * WEIGHT, 128), np.int32)])
    embedding = values.integers(0, 5, (64, 128), np.int32)
    return [np.array([POSITION], np.int32), embedding, weights, values.integers(0, 5, (cache_rows, 128), np.int32)]


def expected(layers: int, embedding: np.ndarray, cache: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, cache = np.zeros((8, 128), np.float32), cache.copy()
    y[0] = embedding[POSITION]
    for pair in range(layers // 2):
        if pair == 0:
            y += np.roll(y, 1, axis=1)
        for tile in range(POSITION // TILE + 1):
            y += cache[tile * TILE : tile * TILE + 8]
        cache[POSITION] = y[0]
    return y, cache


def main(path: str) -> None:
    kernel = load_kernel(Path(path))
    arrays = inputs(kernel.LAYERS, kernel.TILE * kernel.TILES)
    y, cache = expected(kernel.LAYERS, arrays[1], arrays[3])
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("device",))
    answers = {}
    for mode in ("eager", "on_wait"):
        out, cache_out = kernel.decode_step(mesh, interpret=compat.interpret_params(mode))(*arrays)
        equal = bool(np.array_equal(out, y) and np.array_equal(cache_out, cache))
        answers[mode] = {"equal": equal, "races": compat.races_found()}
        compat.reset_interpreter()
        answers[mode]["races_after_reset"] = compat.races_found()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Weights out of a GGUF file, memory-mapped and dequantised row by row."""

from hashlib import sha256
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from schedc.errors import UserError
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.weights.gguf_header import TensorInfo, read_header
from schedc.weights.head_order import Q_AND_K, halves_from_adjacent, load_reordered
from schedc.weights.source import Rows
from schedc.yaml_text import parse_yaml


class GgufWeights:
    """Raises UserError when opened for a file that is no GGUF, is truncated, or has tensors of an unknown name."""

    def __init__(self, path: Path, spec: ModelSpec) -> None:
        header = read_header(path)
        table = parse_yaml((files("schedc.weights") / "gguf_names.yaml").read_text(encoding="utf-8"))
        architecture = header.metadata.get("general.architecture")
        if architecture not in table["architectures"]:
            known = ", ".join(table["architectures"])
            raise UserError(f"{path}: architecture {architecture!r} is not supported; supported: {known}")
        self._path = path
        self._tensors = _by_name(path, header.tensors, table)
        self._check_extents()
        self._data = np.memmap(path, np.uint8, "r")
        self._orders: dict[str, np.ndarray] = {}
        if table["architectures"][architecture]["pairs"] == "adjacent":
            self._orders = _orders(spec)

    def identity(self) -> str:
        stat = self._path.stat()
        first = sha256(self._data[: 1 << 16].tobytes()).hexdigest()
        return f"{self._path.name} of {stat.st_size} bytes, changed {stat.st_mtime_ns}, begins {first}"

    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        rows = rows or (0, self.shape(name)[0])
        if name not in self._orders:
            return self._load(name, rows)
        return load_reordered(lambda heads: self._load(name, heads), rows, self._orders[name])

    def format(self, name: str) -> str | None:
        return None

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        raise KeyError(f"{name}: not quantised")

    def _load(self, name: str, rows: Rows) -> np.ndarray:
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        tensor = self._tensors[name]
        row_bytes = _bytes(self._path, tensor) // tensor.shape[0]
        data = self._data[tensor.offset + rows[0] * row_bytes : tensor.offset + rows[1] * row_bytes]
        values = dequantize(
            np.asarray(data).reshape(rows[1] - rows[0], row_bytes), GGMLQuantizationType(tensor.quantization)
        )
        return np.ascontiguousarray(values, np.float32).reshape(rows[1] - rows[0], *tensor.shape[1:])

    def _check_extents(self) -> None:
        found = self._path.stat().st_size
        last = max(self._tensors.values(), key=lambda tensor: tensor.offset)
        for tensor in sorted(self._tensors.values(), key=lambda tensor: tensor.offset):
            end = tensor.offset + _bytes(self._path, tensor)
            if end > found:
                expected = last.offset + _bytes(self._path, last)
                raise UserError(
                    f"{self._path}: truncated: expected {expected:,} bytes, found {found:,}; "
                    f"tensor {tensor.name} ends at byte {end:,}; fetch the file again"
                )


def _bytes(path: Path, tensor: TensorInfo) -> int:
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    except ImportError:
        raise UserError(f"{path}: reading GGUF needs the gguf package: pip install 'schedc[weights]'") from None
    try:
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(tensor.quantization)]
    except ValueError:
        raise UserError(f"{path}: tensor {tensor.name} has the unknown quantization {tensor.quantization}") from None
    return prod(tensor.shape) // block * block_bytes


def _by_name(path: Path, tensors: tuple[TensorInfo, ...], table: dict[str, Any]) -> dict[str, TensorInfo]:
    by_name: dict[str, TensorInfo] = {}
    unknown = []
    for tensor in tensors:
        name = _name(tensor.name, table)
        if name is not None:
            by_name[name] = tensor
        elif tensor.name not in table["ignored"]:
            unknown.append(tensor.name)
    if unknown:
        raise UserError(f"{path}: no dense decoder has these tensors: {', '.join(unknown)}")
    return by_name


def _name(tensor: str, table: dict[str, Any]) -> str | None:
    if not tensor.startswith("blk."):
        return table["model"].get(tensor)
    _, layer, rest = tensor.split(".", 2)
    suffix = table["layer"].get(rest)
    return None if suffix is None else f"layers.{layer}.{suffix}"


def _orders(spec: ModelSpec) -> dict[str, np.ndarray]:
    """How to undo the reordering to adjacent pairs, which was over the whole head, where the spec has halves."""
    orders: dict[str, np.ndarray] = {}
    for at in spec.iter_layers():
        mixer = at.block.mixer
        if isinstance(mixer, Gqa | Mla) and (mixer.rope is None or mixer.rope.pairs == "half"):
            order = halves_from_adjacent(mixer.head_dim, mixer.head_dim)
            orders |= {f"layers.{at.layer}.{suffix}": order for suffix in Q_AND_K}
    return orders

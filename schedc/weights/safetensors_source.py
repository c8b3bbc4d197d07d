"""Weights out of safetensors files with the names of Hugging Face's models, in one file or in shards."""

from collections.abc import Mapping
from importlib.resources import files
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

import numpy as np

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.safetensors_file import map_tensors
from schedc.weights.source import Rows, expected_shapes
from schedc.yaml_text import parse_yaml

INDEX = "model.safetensors.index.json"


class SafetensorsWeights:
    """`path`: a .safetensors file, an index of shards, or a folder with either.

    Raises UserError when opened for files that are absent, truncated, or have tensors of an unknown name.
    """

    def __init__(self, path: Path, spec: ModelSpec) -> None:
        table = parse_yaml((files("schedc.weights") / "huggingface_names.yaml").read_text(encoding="utf-8"))
        placements = {at.layer: at.block.placement for at in spec.iter_layers()}
        shapes = expected_shapes(spec)
        self._files = _files(path)
        self._tensors: dict[str, np.ndarray] = {}
        unknown = []
        for file in self._files:
            for tensor, values in map_tensors(file).items():
                name = _name(tensor, table, placements)
                parts = _parts(tensor, table)
                if name is not None:
                    self._tensors[name] = values
                elif parts and all(part in shapes for part in parts):
                    self._tensors |= _split(values, {part: shapes[part][0] for part in parts})
                elif not any(tensor.endswith(ignored) for ignored in table["ignored"]):
                    unknown.append(tensor)
        if unknown:
            raise UserError(f"{path}: no dense decoder like {spec.name} has these tensors: {', '.join(unknown)}")

    def identity(self) -> str:
        stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in self._files]
        return "; ".join(f"{name} of {size} bytes, changed {changed}" for name, size, changed in stats)

    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        tensor = self._tensors[name]
        return np.array(tensor if rows is None else tensor[rows[0] : rows[1]], np.float32)

    def format(self, name: str) -> str | None:
        return None

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        raise KeyError(f"{name}: not quantised")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        if (path / INDEX).exists():
            return _files(path / INDEX)
        if (path / "model.safetensors").exists():
            return [path / "model.safetensors"]
        raise UserError(f"{path}: has neither model.safetensors nor {INDEX}")
    if path.suffix != ".json":
        return [path]
    try:
        shards = sorted({str(shard) for shard in loads(path.read_text(encoding="utf-8"))["weight_map"].values()})
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: is not an index of safetensors files") from None
    absent = [shard for shard in shards if not (path.parent / shard).exists()]
    if absent:
        raise UserError(f"{path}: {len(absent)} of {len(shards)} files are missing: {', '.join(absent)}")
    return [path.parent / shard for shard in shards]


def _parts(tensor: str, table: dict[str, Any]) -> list[str]:
    """The weights that a fused tensor of a layer holds."""
    layer, _, rest = tensor.removeprefix("model.layers.").partition(".")
    return [f"layers.{layer}.{part}" for part in table["fused"].get(rest, ())]


def _split(values: np.ndarray, rows: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The tensor in pieces of `rows` each; the last gets what is left, so that a wrong size shows there."""
    ends = np.cumsum(list(rows.values()))[:-1]
    return dict(zip(rows, np.split(values, ends), strict=True))


def _name(tensor: str, table: dict[str, Any], placements: Mapping[int, str]) -> str | None:
    if not tensor.startswith("model.layers."):
        return table["model"].get(tensor)
    layer, _, rest = tensor.removeprefix("model.layers.").partition(".")
    if not layer.isdecimal():
        return None
    suffix = table["layer"].get(rest)
    if suffix is None:
        norm, _, weight = rest.rpartition(".")
        norms = table["norms"][placements.get(int(layer), "pre")]
        if norm not in norms:
            return None
        suffix = f"{norms[norm]}.{weight}"
    return f"layers.{layer}.{suffix}"

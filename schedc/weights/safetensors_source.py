"""Weights out of safetensors files with the names of Hugging Face's models, in one file or in shards."""

from collections.abc import Mapping
from json import JSONDecodeError, loads
from math import prod
from pathlib import Path

import numpy as np

from schedc.errors import UserError
from schedc.spec.mixers import Mixer
from schedc.spec.model import ModelSpec
from schedc.weights.checkpoints import with_quantised
from schedc.weights.checkpoints.quantised import QuantisedTensor
from schedc.weights.safetensors_file import map_tensors
from schedc.weights.selected_rows import SelectedRows
from schedc.weights.source import Rows, expected_shapes
from schedc.weights.tensor_names import Stored, best_table

INDEX = "model.safetensors.index.json"


class SafetensorsWeights:
    """`path`: a .safetensors file, an index of shards, or a folder with either.

    A weight is a view of its mapped tensor, of one expert of a stack too: nothing but the rows asked for is read.
    Raises UserError when opened for files that are absent, truncated, or have tensors of an unknown name.
    """

    def __init__(self, path: Path, spec: ModelSpec) -> None:
        placements = {at.layer: at.block.placement for at in spec.iter_layers()}
        shapes = expected_shapes(spec)
        self._files = _files(path)
        mapped = {name: values for file in self._files for name, values in map_tensors(file).items()}
        tensors = with_quantised(mapped, str(path))
        table = best_table(list(tensors), placements)
        mixers = {at.layer: at.block.mixer for at in spec.iter_layers()}
        self._tensors: dict[str, np.ndarray | SelectedRows | QuantisedTensor] = {}
        self._narrowed: dict[tuple[str, int, int], int] = {}
        unknown = []
        for name, values in tensors.items():
            if table.ignores(name, spec.num_layers):
                continue
            stored = table.find(name, placements)
            if stored is None:
                unknown.append(name)
                continue
            try:
                self._tensors.update(stored.weights(values, shapes, _groups(stored, mixers)))
            except ValueError as error:
                raise UserError(f"{path}: {name}: {error}") from None
            if stored.longer:
                self._count_narrowed(stored.parts[0], prod(values.shape))
        if unknown:
            raise UserError(f"{path}: no decoder like {spec.name} has these tensors: {', '.join(unknown)}")

    def notes(self) -> tuple[str, ...]:
        """What of the stored numbers is left out."""
        return tuple(
            f"{weight}: {stored} numbers are stored, of which the first {used} are read, in {layers} layers"
            for (weight, stored, used), layers in self._narrowed.items()
        )

    def _count_narrowed(self, name: str, stored: int) -> None:
        used = self._tensors[name].shape[0]
        if used < stored:
            key = name.split(".", 2)[2], stored, used
            self._narrowed[key] = self._narrowed.get(key, 0) + 1

    def identity(self) -> str:
        stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in self._files]
        return "; ".join(f"{name} of {size} bytes, changed {changed}" for name, size, changed in stats)

    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        tensor = self._tensors[name]
        held = tensor if rows is None else tensor[rows[0] : rows[1]]
        return held.values() if isinstance(held, QuantisedTensor) else np.array(held, np.float32)

    def format(self, name: str) -> str | None:
        tensor = self._tensors[name]
        return tensor.format if isinstance(tensor, QuantisedTensor) else None

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        tensor = self._tensors[name]
        if not isinstance(tensor, QuantisedTensor):
            raise KeyError(f"{name}: not quantised")
        return tensor[rows[0] : rows[1]].numbers()


def _groups(stored: Stored, mixers: Mapping[int, Mixer]) -> int:
    """In how many groups the parts of a tensor lie; 1 for a mixer of another kind, whose weights are not there."""
    if not stored.by:
        return 1
    groups: int = getattr(mixers.get(int(stored.parts[0].split(".")[1])), stored.by, 1)
    return groups


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

"""What the tensors of a checkpoint are called here: tables by family, and weights that lie together in one tensor."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from schedc.weights.selected_rows import SelectedRows, part_of_every_group
from schedc.yaml_text import parse_yaml

_EXPERT = "{expert}"
_EXPERTS = re.compile(r"(?<=\.experts\.)\d+(?=\.)")
"""An expert's number in the name of its tensor."""


@dataclass(frozen=True)
class Stored:
    """The weights of one tensor, by their names; with `{expert}` in them it is a stack of one tensor an expert.

    Of several `parts` each has its share of the outputs: one after the other, or every n-th when `interleaved`, or one
    after the other within each of as many groups as the mixer's field `by` says, such as its heads.
    Stored [out, in], or [in, out] when `inputs_first`. A tensor may have axes of length one that the weight lacks, and
    if it may be `longer`, numbers behind the weight's last, which nothing reads.
    """

    parts: tuple[str, ...]
    interleaved: bool = False
    inputs_first: bool = False
    by: str = ""
    longer: bool = False

    def weights(self, tensor: Any, shapes: Mapping[str, tuple[int, ...]], groups: int = 1) -> Iterator[tuple[str, Any]]:
        """Views of `tensor`, an array or a quantised weight, which read nothing, by name; `shapes` are the model's.

        Raises ValueError if the parts do not make up the tensor.
        """
        stacked = _EXPERT in self.parts[0]
        for expert, own in enumerate(tensor) if stacked else ((0, tensor),):
            names = [part.replace(_EXPERT, str(expert)) for part in self.parts]
            for name, part in zip(
                names, self._split(own.T if self.inputs_first else own, names, shapes, groups), strict=True
            ):
                yield name, self._in_shape(part, shapes.get(name))

    def _in_shape(self, tensor: Any, shape: tuple[int, ...] | None) -> Any:
        if shape is None or not isinstance(tensor, np.ndarray) or tensor.shape == shape:
            return tensor
        if len(tensor.shape) > len(shape):
            kept = [size for size in tensor.shape if size != 1]
            tensor = tensor.reshape(kept) if len(kept) == len(shape) else tensor
        if self.longer and len(tensor.shape) == len(shape) and len(tensor) > shape[0]:
            tensor = tensor[: shape[0]]
        return tensor

    def _split(
        self, tensor: Any, names: list[str], shapes: Mapping[str, tuple[int, ...]], groups: int
    ) -> Iterator[Any]:
        if len(names) == 1:
            yield tensor
            return
        if self.interleaved:
            yield from (tensor[place :: len(names)] for place in range(len(names)))
            return
        sizes = [shapes[name][0] if name in shapes else 0 for name in names]
        if sum(sizes) != len(tensor):
            raise ValueError(f"{len(tensor)} outputs, where {', '.join(names)} have {' + '.join(map(str, sizes))}")
        if any(size % groups for size in sizes):
            raise ValueError(f"{' + '.join(map(str, sizes))} outputs do not divide into {groups} groups")
        if groups > 1:
            each = [size // groups for size in sizes]
            for part in range(len(each)):
                rows = part_of_every_group(groups, each, part)
                yield SelectedRows(tensor, rows) if isinstance(tensor, np.ndarray) else tensor.select(rows)
            return
        first = 0
        for size in sizes:
            yield tensor[first : first + size]
            first += size


@dataclass(frozen=True)
class NameTable:
    """One file of `huggingface_names/`, over the one it `extends`."""

    name: str
    model: Mapping[str, str]
    layer: Mapping[str, Stored]
    norms: Mapping[str, Mapping[str, str]]
    prefixes: Mapping[str, str]
    ignored: tuple[str, ...]
    further_layers_ignored: bool

    def find(self, tensor: str, placements: Mapping[int, str]) -> Stored | None:
        """`placements`: where each layer of the model has its norms."""
        tensor = self._bare(tensor)
        layer, rest = _in_layer(tensor)
        if layer is None:
            name = self.model.get(tensor)
            return None if name is None else Stored((name,))
        pattern = _EXPERTS.sub(_EXPERT, rest)
        stored = self.layer.get(pattern) or self._norm(rest, placements.get(layer, "pre"))
        if stored is None:
            return None
        expert = rest.split(".experts.")[1].split(".")[0] if pattern != rest else _EXPERT
        parts = tuple(f"layers.{layer}.{part.replace(_EXPERT, expert)}" for part in stored.parts)
        return replace(stored, parts=parts)

    def ignores(self, tensor: str, layers: int) -> bool:
        if any(fnmatchcase(tensor, pattern) for pattern in self.ignored):
            return True
        layer, _ = _in_layer(self._bare(tensor))
        return self.further_layers_ignored and layer is not None and layer >= layers

    def _bare(self, tensor: str) -> str:
        for prefix, instead in self.prefixes.items():
            if tensor.startswith(prefix):
                return instead + tensor.removeprefix(prefix)
        return tensor

    def _norm(self, rest: str, placement: str) -> Stored | None:
        norm, _, weight = rest.rpartition(".")
        name = self.norms[placement].get(norm)
        return None if name is None else Stored((f"{name}.{weight}",))


@cache
def name_tables() -> tuple[NameTable, ...]:
    """All tables; the one that others extend comes first."""
    data = {
        entry.name.removesuffix(".yaml"): parse_yaml(entry.read_text(encoding="utf-8"))
        for entry in (files("schedc.weights") / "huggingface_names").iterdir()
        if entry.name.endswith(".yaml")
    }
    order = sorted(data, key=lambda name: (len(_line(data, name)), name))
    return tuple(_table(name, [data[ancestor] for ancestor in _line(data, name)]) for name in order)


def best_table(tensors: list[str], placements: Mapping[int, str]) -> NameTable:
    """The table that knows the most of these names; all experts of a layer count as one."""
    layers, names = len(placements), {_EXPERTS.sub("0", name): None for name in tensors}

    def strange(table: NameTable) -> int:
        return sum(table.find(name, placements) is None and not table.ignores(name, layers) for name in names)

    return min(name_tables(), key=strange)


def _line(data: Mapping[str, Any], name: str) -> list[str]:
    """The table and those it extends, the first of them first."""
    parent = data[name].get("extends")
    return [*(_line(data, parent) if parent else []), name]


def _table(name: str, line: list[dict[str, Any]]) -> NameTable:
    def merged(key: str) -> dict[str, Any]:
        return {entry: value for table in line for entry, value in table.get(key, {}).items()}

    return NameTable(
        name,
        merged("model"),
        {tensor: _stored(entry) for tensor, entry in merged("layer").items()},
        merged("norms"),
        merged("prefixes"),
        tuple(pattern for table in line for pattern in table.get("ignored", ())),
        any(table.get("further_layers") == "ignored" for table in line),
    )


def _stored(entry: str | dict[str, Any]) -> Stored:
    if isinstance(entry, str):
        return Stored((entry,))
    return Stored(**entry | {"parts": tuple(entry["parts"])})


def _in_layer(tensor: str) -> tuple[int | None, str]:
    """(layer, the rest of the name); layer None: a tensor outside the layers."""
    layer, _, rest = tensor.removeprefix("model.layers.").partition(".")
    if not tensor.startswith("model.layers.") or not layer.isdecimal():
        return None, tensor
    return int(layer), rest

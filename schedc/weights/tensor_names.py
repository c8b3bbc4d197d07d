"""What the tensors of a checkpoint are called here: tables by family, and weights that lie together in one tensor."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from schedc.yaml_text import parse_yaml

_EXPERT = "{expert}"


@dataclass(frozen=True)
class Stored:
    """The weights of one tensor, by their names; with `{expert}` in them it is a stack of one tensor an expert.

    Of several `parts` each has its share of the outputs: one after the other, or every n-th when `interleaved`.
    Stored [out, in], or [in, out] when `inputs_first`.
    """

    parts: tuple[str, ...]
    interleaved: bool = False
    inputs_first: bool = False

    def weights(self, tensor: Any, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Any]]:
        """Views of `tensor`, an array or a quantised weight, which read nothing, by name; `shapes` are the model's.

        Raises ValueError if the parts do not make up the tensor.
        """
        stacked = _EXPERT in self.parts[0]
        for expert, own in enumerate(tensor) if stacked else ((0, tensor),):
            names = [part.replace(_EXPERT, str(expert)) for part in self.parts]
            yield from zip(names, self._split(own.T if self.inputs_first else own, names, shapes), strict=True)

    def _split(
        self, tensor: np.ndarray, names: list[str], shapes: Mapping[str, tuple[int, ...]]
    ) -> Iterator[np.ndarray]:
        if len(names) == 1:
            yield tensor
            return
        if self.interleaved:
            yield from (tensor[place :: len(names)] for place in range(len(names)))
            return
        sizes = [shapes[name][0] if name in shapes else 0 for name in names]
        if sum(sizes) != len(tensor):
            raise ValueError(f"{len(tensor)} outputs, where {', '.join(names)} have {' + '.join(map(str, sizes))}")
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
        pattern = re.sub(r"(?<=\.experts\.)\d+(?=\.)", _EXPERT, rest)
        stored = self.layer.get(pattern) or self._norm(rest, placements.get(layer, "pre"))
        if stored is None:
            return None
        expert = rest.split(".experts.")[1].split(".")[0] if pattern != rest else _EXPERT
        parts = tuple(f"layers.{layer}.{part.replace(_EXPERT, expert)}" for part in stored.parts)
        return Stored(parts, stored.interleaved, stored.inputs_first)

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
    """The table that knows the most of these names."""

    def strange(table: NameTable) -> int:
        layers = len(placements)
        return sum(table.find(name, placements) is None and not table.ignores(name, layers) for name in tensors)

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
    return Stored(tuple(entry["parts"]), entry.get("interleaved", False), entry.get("inputs_first", False))


def _in_layer(tensor: str) -> tuple[int | None, str]:
    """(layer, the rest of the name); layer None: a tensor outside the layers."""
    layer, _, rest = tensor.removeprefix("model.layers.").partition(".")
    if not tensor.startswith("model.layers.") or not layer.isdecimal():
        return None, tensor
    return int(layer), rest

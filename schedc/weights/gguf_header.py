"""The header of a GGUF file: metadata and where each tensor lies, read in one pass with every bound checked.

Format: github.com/ggml-org/ggml, docs/gguf.md, versions 2 and 3, little-endian.
"""

from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from schedc.errors import UserError

MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRUCTS = {kind: Struct(f"<{code}") for kind, code in _NUMBERS.items()}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True)
class TensorInfo:
    """`shape` as in numpy, slowest first; `offset` from the beginning of the file."""

    name: str
    shape: tuple[int, ...]
    quantization: int
    offset: int


@dataclass(frozen=True)
class GgufHeader:
    metadata: dict[str, Any]
    tensors: tuple[TensorInfo, ...]


def read_header(path: Path) -> GgufHeader:
    """Raises UserError if the file cannot be read, is no GGUF, or ends inside the header."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return _parse(_Reader(path, file.read(_HEADER_GUESS), size))
    except _MoreNeededError:
        return _parse(_Reader(path, path.read_bytes(), size))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


_HEADER_GUESS = 1 << 24


class _MoreNeededError(Exception):
    """The header is longer than the part of the file that was read."""


class _Reader:
    def __init__(self, path: Path, data: bytes, size: int) -> None:
        self.path, self.data, self.size, self.at = path, data, size, 0

    def take(self, count: int, what: str) -> bytes:
        end = self.at + count
        if end > self.size:
            raise UserError(
                f"{self.path}: truncated in {what}: expected {end:,} bytes or more, found {self.size:,}; "
                "fetch the file again"
            )
        if end > len(self.data):
            raise _MoreNeededError
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, kind: int, what: str) -> Any:
        packed = _STRUCTS[kind]
        return packed.unpack(self.take(packed.size, what))[0]

    def string(self, what: str) -> str:
        return self.take(self.number(10, what), what).decode("utf-8", errors="replace")

    def value(self, kind: int, what: str) -> Any:
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            item, count = self.number(4, what), self.number(10, what)
            if item in _NUMBERS:
                packed = Struct(f"<{count}{_NUMBERS[item]}")
                return list(packed.unpack(self.take(packed.size, what)))
            return [self.value(item, what) for _ in range(count)]
        if kind not in _NUMBERS:
            raise UserError(f"{self.path}: {what} has the unknown value type {kind} at byte {self.at:,}")
        return self.number(kind, what)


def _parse(reader: _Reader) -> GgufHeader:
    magic = reader.take(4, "the magic number")
    if magic != MAGIC:
        raise UserError(f"{reader.path}: not a GGUF file: begins with {magic!r}, expected {MAGIC!r}")
    version = reader.number(4, "the version")
    if version not in (2, 3):
        raise UserError(f"{reader.path}: GGUF version {version} is not supported; versions 2 and 3 are")
    tensor_count, metadata_count = reader.number(10, "the counts"), reader.number(10, "the counts")
    metadata: dict[str, Any] = {}
    for index in range(metadata_count):
        key = reader.string(f"metadata entry {index}")
        metadata[key] = reader.value(reader.number(4, key), f"metadata {key}")
    infos = []
    for index in range(tensor_count):
        name = reader.string(f"tensor entry {index}")
        dimensions = [reader.number(10, name) for _ in range(reader.number(4, name))]
        infos.append((name, tuple(reversed(dimensions)), reader.number(4, name), reader.number(10, name)))
    alignment = metadata.get("general.alignment", 32)
    start = -(-reader.at // alignment) * alignment
    return GgufHeader(metadata, tuple(TensorInfo(n, shape, kind, start + offset) for n, shape, kind, offset in infos))

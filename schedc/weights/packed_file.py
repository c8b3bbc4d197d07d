"""The file that holds the packed arrays of one device: a header, then the arrays as they lie in HBM.

bytes 0 … 7       magic
bytes 8 … 15      length of the header, little-endian
header            JSON: version, layouts_sha256, arrays: [{name, offset, rows, crc32}]
arrays            each int32[rows, 128], little-endian, from its offset, a multiple of 4096
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import numpy as np

from schedc.errors import UserError
from schedc.weights.layout import Layout, layouts_hash
from schedc.weights.words import LANES

MAGIC = b"SCHEDCW1"
VERSION = 1
ROW_BYTES = LANES * 4
_ALIGN = 4096
_CHECK_ROWS = 1 << 15


@dataclass(frozen=True)
class Entry:
    """One array; `crc32` is 8 hex digits, so that the header has its length before the sums are known."""

    name: str
    offset: int
    rows: int
    crc32: str = "00000000"

    @property
    def bytes(self) -> int:
        return self.rows * ROW_BYTES


@dataclass(frozen=True)
class Header:
    layouts_sha256: str
    arrays: tuple[Entry, ...]

    @property
    def file_bytes(self) -> int:
        last = self.arrays[-1]
        return last.offset + last.bytes

    def encode(self) -> bytes:
        """The file's bytes from 0 to the first array."""
        data = {
            "version": VERSION,
            "layouts_sha256": self.layouts_sha256,
            "arrays": [asdict(entry) for entry in self.arrays],
        }
        text = dumps(data).encode()
        head = MAGIC + len(text).to_bytes(8, "little") + text
        return head.ljust(_aligned(len(head)), b"\0")

    def with_sums(self, sums: Sequence[int]) -> "Header":
        arrays = tuple(replace(entry, crc32=f"{value:08x}") for entry, value in zip(self.arrays, sums, strict=True))
        return replace(self, arrays=arrays)


def plan_header(layouts: Sequence[Layout]) -> Header:
    """Where each array will lie; the sums are still zeros."""
    offset = 0
    while True:  # the offsets are part of the header whose length they depend on
        entries, at = [], offset
        for layout in layouts:
            entries.append(Entry(layout.name, at, layout.rows))
            at = _aligned(at + entries[-1].bytes)
        header = Header(layouts_hash(layouts), tuple(entries))
        if len(header.encode()) <= offset:
            return header
        offset = len(header.encode())


def load_packed(path: Path, layouts: Sequence[Layout] | None = None, verify: bool = True) -> dict[str, np.ndarray]:
    """The arrays by name, each a read-only memory map of int32[rows, 128].

    Raises UserError for a file that is not packed weights, is truncated, was packed for other `layouts` (if
    given), or (with `verify`, which reads it all) has an array with a wrong checksum.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = _read_header(path, size, file)
        if layouts is not None and header.layouts_sha256 != layouts_hash(layouts):
            raise UserError(
                f"{path}: packed for another layout: sha256 of the layouts is {header.layouts_sha256[:12]}…, "
                f"expected {layouts_hash(layouts)[:12]}…; pack again"
            )
        if size != header.file_bytes:
            word = "truncated" if size < header.file_bytes else "too long"
            raise UserError(f"{path}: {word}: expected {header.file_bytes:,} bytes, found {size:,}; pack again")
        arrays = {
            entry.name: np.memmap(path, np.int32, "r", entry.offset, (entry.rows, LANES)) for entry in header.arrays
        }
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if verify:
        for entry in header.arrays:
            found = f"{_checksum(arrays[entry.name]):08x}"
            if found != entry.crc32:
                raise UserError(
                    f"{path}: {entry.name}: bytes {entry.offset:,} to {entry.offset + entry.bytes:,} are damaged: "
                    f"crc32 expected {entry.crc32}, found {found}; pack again"
                )
    return dict(arrays)


def _read_header(path: Path, size: int, file: BinaryIO) -> Header:
    start = file.read(16)
    if start[:8] != MAGIC:
        raise UserError(f"{path}: not packed weights: begins with {start[:8]!r}, expected {MAGIC!r}")
    length = int.from_bytes(start[8:], "little")
    if 16 + length > size:
        raise UserError(
            f"{path}: truncated in the header: expected {16 + length:,} bytes or more, found {size:,}; pack again"
        )
    try:
        data = loads(file.read(length))
        if data["version"] != VERSION:
            raise UserError(f"{path}: packed in version {data['version']}, this is version {VERSION}; pack again")
        return Header(data["layouts_sha256"], tuple(Entry(**entry) for entry in data["arrays"]))
    except (JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise UserError(f"{path}: the header is damaged; pack again") from None


def _checksum(array: np.ndarray) -> int:
    value = 0
    for start in range(0, len(array), _CHECK_ROWS):
        value = crc32(array[start : start + _CHECK_ROWS].tobytes(), value)
    return value


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN

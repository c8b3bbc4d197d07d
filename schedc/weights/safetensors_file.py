"""One safetensors file: 8 bytes with the length of a JSON header, the header, the tensors. Memory-mapped."""

from json import JSONDecodeError, loads
from math import prod
from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e8m0fnu

from schedc.errors import UserError

_DTYPES: dict[str, np.dtype] = {
    name: np.dtype(kind)
    for name, kind in {
        "F64": np.float64,
        "F32": np.float32,
        "F16": np.float16,
        "BF16": bfloat16,
        "F8_E4M3": float8_e4m3fn,
        "F8_E8M0": float8_e8m0fnu,
        "I64": np.int64,
        "I32": np.int32,
        "I8": np.int8,
        "U8": np.uint8,
    }.items()
}


def map_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor by its name, in its own dtype, read-only.

    Raises UserError for a file that cannot be read, is no safetensors file, is truncated, or holds numbers of a type
    that no weights are stored in.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or not 2 <= length <= _LONGEST_HEADER:
                raise UserError(f"{path}: not a safetensors file: its first 8 bytes give no header length")
            if 8 + length > size:
                raise UserError(
                    f"{path}: truncated in the header: expected {8 + length:,} bytes or more, found {size:,}; "
                    "fetch the file again"
                )
            header = loads(file.read(length))
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            expected = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
            if size < expected:
                raise UserError(f"{path}: truncated: expected {expected:,} bytes, found {size:,}; fetch the file again")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (JSONDecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
        raise UserError(f"{path}: not a safetensors file: its header is damaged") from None
    data = np.memmap(path, np.uint8, "r")
    return {name: _view(path, data, 8 + length, name, entry) for name, entry in entries.items()}


_LONGEST_HEADER = 100_000_000


def _view(path: Path, data: np.ndarray, base: int, name: str, entry: dict) -> np.ndarray:
    if entry["dtype"] not in _DTYPES:
        raise UserError(f"{path}: {name} holds {entry['dtype']} numbers; supported: {', '.join(_DTYPES)}")
    dtype = _DTYPES[entry["dtype"]]
    start, stop = entry["data_offsets"]
    expected = prod(entry["shape"]) * dtype.itemsize
    if stop - start != expected:
        raise UserError(f"{path}: {name}: expected {expected:,} bytes, found {stop - start:,}")
    return data[base + start : base + stop].view(dtype).reshape(entry["shape"])

"""The formats of compressed-tensors, told apart by the dtypes of `weight_packed` or `weight` and `weight_scale`.

pack-quantized: int32 words of eight codes + 8, low bits first, a scale a group; nvfp4-pack-quantized: two e2m1 a byte,
e4m3 scales, and a factor of the tensor by which they were multiplied; mxfp4-pack-quantized: two e2m1 a byte, e8m0
scales; int-quantized and float-quantized: a code a byte, a scale a channel or a tensor.
"""

from collections.abc import Mapping

import numpy as np
from ml_dtypes import bfloat16

from schedc.errors import UserError
from schedc.weights.checkpoints.quantised import (
    Found,
    Outputs,
    QuantisedTensor,
    by_output,
    e8m0_checked,
    nibbles,
    rows_of,
)

PLAIN = {"int8": "int8", "float8_e4m3fn": "fp8"}


def read(name: str, tensors: Mapping[str, np.ndarray]) -> Found | None:
    if not name.endswith(".weight_scale") or f"{name}_2" in tensors:
        return None
    stem, scale = name.removesuffix("_scale"), tensors[name]
    if _zero_points(stem, tensors):
        raise UserError(f"{stem}_zero_point: codes with a zero point are not supported; quantise symmetrically")
    parts = {name, f"{stem}_zero_point"} & set(tensors)
    packed = tensors.get(f"{stem}_packed")
    if packed is None:
        return Found(stem, _plain(stem, tensors[stem], scale), frozenset(parts | {stem}))
    parts |= {f"{stem}_packed"}
    if packed.dtype == np.int32:
        shape = tensors.get(f"{stem}_shape")
        tensor = _int4(stem, packed, scale, None if shape is None else tuple(int(size) for size in shape))
    elif f"{stem}_global_scale" in tensors and scale.dtype.name == "float8_e4m3fn":
        parts |= {f"{stem}_global_scale"}
        tensor = _nvfp4(packed, scale, tensors[f"{stem}_global_scale"])
    elif packed.dtype == np.uint8 and scale.dtype.name in ("uint8", "float8_e8m0fnu"):
        tensor = _mxfp4(packed, scale)
    else:
        raise UserError(f"{stem}_packed: {packed.dtype.name} with scales of {scale.dtype.name} is no known format")
    return Found(stem, tensor, frozenset(parts))


def _zero_points(stem: str, tensors: Mapping[str, np.ndarray]) -> bool:
    return f"{stem}_zero_point" in tensors and bool(np.asarray(tensors[f"{stem}_zero_point"]).any())


def _plain(stem: str, codes: np.ndarray, scale: np.ndarray) -> QuantisedTensor:
    outputs, inputs = codes.shape
    if codes.dtype.name not in PLAIN or scale.size not in (1, outputs):
        raise UserError(
            f"{stem}: {codes.dtype.name}{list(codes.shape)} with {scale.size} scales; expected int8 or float8_e4m3fn "
            f"with 1 scale or {outputs}"
        )

    def numbers(rows: Outputs) -> dict[str, np.ndarray]:
        return {"codes": rows_of(codes, rows).view(np.uint8), "scale": by_output(scale, rows)}

    return QuantisedTensor(PLAIN[codes.dtype.name], range(outputs), inputs, numbers)


def _int4(stem: str, packed: np.ndarray, scale: np.ndarray, shape: tuple[int, ...] | None) -> QuantisedTensor:
    outputs, inputs = shape or (packed.shape[0], 8 * packed.shape[1])
    groups = scale.shape[1] if scale.ndim == 2 else 1
    group = inputs // groups
    if packed.shape != (outputs, -(-inputs // 8)) or inputs % groups or group not in (32, 64, 128):
        raise UserError(
            f"{stem}_packed: int32{list(packed.shape)} and scales {list(scale.shape)} for [{outputs}, {inputs}]; "
            "expected 4-bit codes in groups of 32, 64 or 128"
        )
    if not np.array_equal(np.asarray(scale, np.float32), scale.astype(bfloat16).astype(np.float32)):
        raise UserError(f"{stem}_scale: {scale.dtype.name} scales that are no bf16 numbers; int4 here has bf16 scales")

    def numbers(rows: Outputs) -> dict[str, np.ndarray]:
        words = np.ascontiguousarray(rows_of(packed, rows))
        codes = nibbles(words.view(np.uint8))[:, :inputs] ^ 8  # code + 8, as four bits of two's complement
        return {"codes": codes, "scale": rows_of(scale, rows).astype(bfloat16).view(np.uint16)}

    return QuantisedTensor(f"int4_g{group}", range(outputs), inputs, numbers)


def _mxfp4(packed: np.ndarray, scale: np.ndarray) -> QuantisedTensor:
    def numbers(rows: Outputs) -> dict[str, np.ndarray]:
        return e8m0_checked(nibbles(rows_of(packed, rows)), rows_of(scale, rows).view(np.uint8))

    return QuantisedTensor("mxfp4", range(len(packed)), 2 * packed.shape[1], numbers)


def _nvfp4(packed: np.ndarray, scale: np.ndarray, factor: np.ndarray) -> QuantisedTensor:
    """A weight is code · scale / factor; what is kept is the f32 nearest to 1 / factor."""
    tensor_scale = np.float32(1) / np.asarray(factor, np.float32)

    def numbers(rows: Outputs) -> dict[str, np.ndarray]:
        return {
            "codes": nibbles(rows_of(packed, rows)),
            "scale": rows_of(scale, rows).view(np.uint8),
            "tensor": by_output(tensor_scale, rows),
        }

    return QuantisedTensor("nvfp4", range(len(packed)), 2 * packed.shape[1], numbers)

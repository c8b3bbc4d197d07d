"""A quantised weight of a checkpoint: rows of codes and scales that are read from the file when they are asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from schedc.errors import UserError
from schedc.weights.formats import FORMATS

Outputs = range | npt.NDArray[np.int64]
"""Outputs of a stored tensor, as a range or one by one."""

Read = Callable[[Outputs], dict[str, np.ndarray]]
"""Outputs → the sections of the format."""


@dataclass(frozen=True)
class QuantisedTensor:
    """[out, in] of `format`. Slices of outputs read nothing. `turned`: shown as [in, out], as some checkpoints are."""

    format: str
    outputs: Outputs
    inputs: int
    read: Read
    turned: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        shape = len(self.outputs), self.inputs
        return shape[::-1] if self.turned else shape

    @property
    def T(self) -> "QuantisedTensor":  # noqa: N802 (numpy's name)
        return replace(self, turned=not self.turned)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> "QuantisedTensor":
        assert not self.turned, "only outputs can be cut"
        return replace(self, outputs=self.outputs[rows])

    def select(self, rows: npt.NDArray[np.int64]) -> "QuantisedTensor":
        """Of its outputs those numbered `rows`, in this order."""
        assert not self.turned, "only outputs can be chosen"
        return replace(self, outputs=np.asarray(self.outputs)[rows])

    def numbers(self) -> dict[str, np.ndarray]:
        return self.read(self.outputs)

    def values(self) -> np.ndarray:
        """f32[out, in], dequantised."""
        return FORMATS[self.format].decode(self.numbers())


@dataclass(frozen=True)
class QuantisedStack:
    """One tensor an expert."""

    tensors: tuple[QuantisedTensor, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.tensors), *self.tensors[0].shape

    def __len__(self) -> int:
        return len(self.tensors)

    def __iter__(self) -> Iterator[QuantisedTensor]:
        return iter(self.tensors)


@dataclass(frozen=True)
class Found:
    """A weight, the name it would have if it were not quantised, and the tensors it is made of."""

    name: str
    tensor: QuantisedTensor | QuantisedStack
    parts: frozenset[str]


def rows_of(values: np.ndarray, outputs: Outputs) -> np.ndarray:
    if isinstance(outputs, range):
        return values[outputs.start : outputs.stop : outputs.step]
    return values[outputs]


def nibbles(packed: np.ndarray) -> np.ndarray:
    """u8[out, in / 2] → codes u8[out, in], the low half of a byte first."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)


def e8m0_checked(codes: np.ndarray, scale: np.ndarray) -> dict[str, np.ndarray]:
    """The sections of mxfp4. Raises UserError for a scale that f32 has no normal number for, where codes need it."""
    needed = codes.reshape(*scale.shape, -1).any(axis=2)
    wrong = needed & ((scale == 0) | (scale == 255))
    if wrong.any():
        raise UserError(f"{int(wrong.sum())} scales of mxfp4 are 2^-127 or not a number; kernels have 2^-126 … 2^127")
    return {"codes": codes, "scale": scale}


def by_output(scale: np.ndarray, outputs: Outputs) -> np.ndarray:
    """f32 scales of the tensor, or one an output, as uint32[rows, 1]."""
    flat = np.asarray(scale, np.float32).reshape(-1)
    chosen = np.full(len(outputs), flat[0]) if flat.size == 1 else rows_of(flat, outputs)
    return np.ascontiguousarray(chosen, np.float32).view(np.uint32)[:, None]

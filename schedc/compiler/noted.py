"""What the copies of a step hold, as values [rows, columns] a device, beside what the reference has noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schedc.compiler.recording import OfCache, Recorded
from schedc.lower.values import LANES, Piece, Value
from schedc.reference.reference import Noted
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import kernel_value
from schedc.weights.state import keeps_state

EXACT = 2e-4
"""What f32 sums in another order may change, of the largest number of a value. They change about 3e-6."""

ROUNDED = 2.0**-8
"""What rounding to bf16 once changes, of the largest number of a value, and somewhat more."""

LEAST_OF_FP8: Mapping[OfCache, float] = {"": ROUNDED, "read": 2.0**-3, "behind": 2.0**-4}
"""The same by what fp8 (e4m3) numbers of a cache have reached. Of two that a number lies between a kernel may keep the
other one, which is a place further: 2^-3 of a power of two; and so it stays for later steps. With bf16 (2^-9 beside
places of 2^-4 of a number) that is one number in some twenty, a change of a vector that the reference, in which it
happens to other numbers or none, does not show: behind, 2^-4 is allowed."""

TIMES = 6
"""The largest rounding of the reference that a value may differ by: right kernels were seen at 3.6 of it."""

ENOUGH = 64
"""Numbers of a value whose largest rounding says how large that of others is."""

LEAST = 1e-2
"""Values that are all smaller are compared as if the largest were so large."""


@dataclass(frozen=True)
class Seen:
    """One value of one layer, or of one member there, as `device` has it or all together: [rows, …] each.

    What a device does not have is `got` as expected. `layer` is None outside of the layers.
    """

    phase: str
    layer: int | None
    name: str
    device: int | None
    got: np.ndarray
    exact: np.ndarray
    limit: float


@dataclass(frozen=True)
class Copies:
    """`words`: array → int32[devices, rows, 128], as the step has left it."""

    records: tuple[Recorded, ...]
    words: Mapping[str, np.ndarray]
    exact: Noted
    rounded: Noted


def seen(copies: Copies, one: Recorded, trip: int, spec: ModelSpec, active: Sequence[bool]) -> Iterator[Seen]:
    """Of one phase in one trip: every value, on every device that has some of it."""
    layer = one.layers[trip] if one.layers else None
    mixer = None if layer is None else next(at for at in spec.iter_layers() if at.layer == layer).block.mixer
    value, rows = one.value, np.array(active)

    def noted(notes: Noted) -> np.ndarray:
        """[members, rows, …], or of one value [1, rows, …]."""
        found = (notes.outer if layer is None else notes.layers[layer])[value.meaning]
        if mixer is not None:
            found = kernel_value(value.meaning, found, mixer)
        return found if value.members is not None else found[None]

    exact, rounded = noted(copies.exact), noted(copies.rounded)
    words = copies.words[one.array]
    words = words.reshape(len(words), -1, one.members, one.rows, LANES)[:, trip]
    for member in chosen(copies, layer, value, len(exact), rows):
        expected = exact[member].reshape(len(rows), -1)
        parts = [held(part, value, device, member, expected.shape) for device, part in enumerate(words)]
        limit = limit_of(spec, exact[member][rows], rounded[member][rows], of_cache(spec, one, layer))
        name = value.meaning if value.members is None else value.meaning.replace("*", str(member))
        for device, got in _results(parts, value, expected):
            shape = exact[member].shape
            yield Seen(one.phase, layer, name, device, got.reshape(shape), exact[member], limit)


def of_cache(spec: ModelSpec, one: Recorded, layer: int | None) -> OfCache:
    """What `Recorded` says, where layers that keep a state have no cache, and layers before have one too."""
    caching = [at.layer for at in spec.iter_layers() if not keeps_state(at.block.mixer)]
    if not caching or (layer is not None and layer < caching[0]):
        return ""
    own = one.of_cache if layer is None or layer in caching else ""
    return own or ("behind" if layer is not None and layer > caching[0] else "")


def limit_of(spec: ModelSpec, exact: np.ndarray, rounded: np.ndarray, of_cache: OfCache) -> float:
    """How far a value of the rows that count may be from the exact one."""
    size = max(LEAST, float(np.abs(exact).max()) if exact.size else 0.0)
    if spec.quantization.operand_dtype != "bf16":
        return EXACT * size
    # The reference rounds where a kernel may, but not everywhere where one does; and the largest of few differences
    # says little of how large they can be.
    rounding = float(np.abs(rounded - exact).max()) * max(1.0, (ENOUGH / exact.size) ** 0.5) if exact.size else 0.0
    least = LEAST_OF_FP8[of_cache] if spec.kv.dtype == "fp8" else ROUNDED
    return (EXACT + least) * size + TIMES * rounding


def chosen(copies: Copies, layer: int | None, value: Value, members: int, active: np.ndarray) -> Sequence[int]:
    """Which members there are copies of: those that a row that counts has chosen, rounded or not.

    Where rounding decides between two that are nearly equal, a kernel may have taken either.
    """
    if value.members is None or layer is None:
        return range(members)
    exact, rounded = (notes.layers[layer]["mlp.winners"][active] for notes in (copies.exact, copies.rounded))
    return sorted({int(winner) for winner in np.intersect1d(exact, rounded)})


def _results(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], value: Value, expected: np.ndarray
) -> Iterator[tuple[int | None, np.ndarray]]:
    """What devices have together, or each of them by itself."""
    if value.summed:
        total = np.sum([np.where(there, got, 0.0) for got, there in parts], axis=0)
        some = np.any([there for _, there in parts], axis=0)
        yield None, np.where(some, total, np.nan)
        return
    for device, (got, there) in enumerate(parts):
        if there.any():
            yield device if len(parts) > 1 else None, np.where(there, got, expected)


def held(
    words: np.ndarray, value: Value, device: int, member: int, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Of int32[members, rows, 128] the value f32[rows, columns], and which of it this device has."""
    got, there = np.zeros(shape, np.float32), np.zeros(shape, bool)
    place = member
    if value.members is not None:
        own = value.members
        place = member - own.start - device // own.every % own.ring * own.step
        if not 0 <= place < own.count:
            return got, there
    buffer = _numbers(words[place if value.members is not None else 0], value)
    _fill(buffer, value.pieces, device, got, there)
    if value.divided_by:
        amounts = np.ones(shape, np.float32)
        _fill(buffer, value.divided_by, device, amounts, there.copy())
        with np.errstate(all="ignore"):
            got /= np.maximum(amounts, np.float32(1e-30))
    return got, there


def _numbers(words: np.ndarray, value: Value) -> np.ndarray:
    """Rows of 128 numbers."""
    words = np.ascontiguousarray(words)
    if value.stored == "i32":
        return words.astype(np.float32)
    if value.stored == "f32":
        return words.view(np.float32)
    halves = np.stack([words << 16, words & np.int32(-65536)], axis=1).reshape(-1, LANES)
    return np.ascontiguousarray(halves).view(np.float32)


def _fill(buffer: np.ndarray, pieces: Sequence[Piece], device: int, out: np.ndarray, there: np.ndarray) -> None:
    rows, columns = out.shape
    for piece in pieces:
        first = piece.first + device // piece.every % piece.ring * piece.step
        index = np.arange(max(0, min(piece.width, columns - first)))
        if not len(index):
            continue
        row = np.arange(rows)[:, None]
        if piece.turned:
            found = buffer[piece.at + index[None], row]
        else:
            lane = piece.lane + index[None]
            found = buffer[piece.at + row * piece.row_step + lane // LANES * piece.panel_step, lane % LANES]
        out[:, first + index], there[:, first + index] = found, True


def noted_of_rows(rows: Sequence[Noted], count: int) -> Noted:
    """Of tokens that were decoded one by one those of all rows; of the `count` rows the last ones may be missing."""

    def joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        found = {}
        for name in parts[0]:
            axis = 1 if "*" in name else 0
            whole = np.concatenate([part[name] for part in parts], axis)
            missing = [(0, 0)] * whole.ndim
            missing[axis] = (0, count - len(parts))
            found[name] = np.pad(whole, missing)
        return found

    layers = tuple(joined(parts) for parts in zip(*(row.layers for row in rows), strict=True))
    return replace(rows[0], layers=layers, outer=joined([row.outer for row in rows]))

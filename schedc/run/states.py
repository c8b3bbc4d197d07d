"""The states of all devices: each has those of its value heads, and the windows of the channels of its heads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from schedc.lower.graph import StepShape
from schedc.placement.heads import HeadSplit, delta_split
from schedc.placement.split import Split
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.kda import Kda
from schedc.weights.kept import Recurrent
from schedc.weights.state import StateLayout, state_layout


@dataclass(frozen=True)
class States:
    """Of one mixer, in the `layers` layers that it has in a run."""

    mixer: Kda | GatedDelta
    layers: int
    shape: StepShape

    @property
    def whole(self) -> StateLayout:
        """Of the heads of all devices."""
        return state_layout(self.mixer, self.layers, self.shape.kept_states)

    @property
    def split(self) -> HeadSplit:
        return delta_split(self.mixer, self.shape.devices, self.shape.placement)

    @property
    def of_device(self) -> StateLayout:
        return replace(self.whole, key_heads=self.split.kv.each, value_heads=self.split.query.each)

    def part(self, kept: Recurrent, device: int) -> Recurrent:
        """What a device has of a sequence; zeros for heads that are padding."""
        state, windows = np.asarray(kept.state), np.asarray(kept.windows)
        sides = []
        for channels, split in self._channels():
            side = windows[:, channels.start : channels.stop].reshape(len(windows), split.total, -1)
            sides.append(_padded(side, split, device, axis=1).reshape(len(windows), -1))
        return Recurrent(_padded(state, self.split.query, device, axis=0), np.concatenate(sides, axis=1))

    def put(self, whole: Recurrent, part: Recurrent, device: int) -> None:
        """Write what a device has of a sequence into its place in `whole`, in place."""
        held = self.split.query.held(device)
        whole.state[held.start : held.stop] = part.state[: len(held)]
        at = 0
        for channels, split in self._channels():
            side = whole.windows[:, channels.start : channels.stop].reshape(len(whole.windows), split.total, -1)
            size, held = side.shape[2], split.held(device)
            mine = part.windows[:, at : at + split.each * size].reshape(len(side), split.each, size)
            side[:, held.start : held.stop] = mine[:, : len(held)]
            whole.windows[:, channels.start : channels.stop] = side.reshape(len(side), -1)
            at += split.each * size

    def empty(self) -> Recurrent:
        """Zeros of one sequence in one layer."""
        whole = self.whole
        channels = sum(count * size for _, count, size in whole.sides())
        state = np.zeros((whole.value_heads, whole.value_dim, whole.key_dim), np.float32)
        return Recurrent(state, np.zeros((whole.conv - 1, channels), np.float32))

    def _channels(self) -> list[tuple[range, Split]]:
        """The channels of q, k and v, and how their heads are divided."""
        found, at = [], 0
        for (_, count, size), split in zip(
            self.whole.sides(), (self.split.kv, self.split.kv, self.split.query), strict=True
        ):
            found.append((range(at, at + count * size), split))
            at += count * size
        return found


def _padded(side: np.ndarray, split: Split, device: int, axis: int) -> np.ndarray:
    """The heads of a device along an axis, and zeros for those that are padding."""
    held = split.held(device)
    missing = [(0, 0)] * side.ndim
    missing[axis] = (0, split.each - len(held))
    return np.pad(np.take(side, held, axis), missing)

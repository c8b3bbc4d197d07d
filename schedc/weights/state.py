"""States of delta rules in HBM as 32-bit words, `int32[rows, 128]`: what a layer keeps of a sequence of any length.

Order of the words: [layer][row][value head][key][128 lanes], then the windows of the convolutions,
[tap][panel][128 lanes]; all f32. A head's value dimensions are lanes, its keys rows, padded to whole groups of 8. A
panel of a window is one head of q, of k or of v, all q before all k before all v, padded to whole groups of 8.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedc.spec.mixers import Mixer
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.kda import Kda
from schedc.weights.kept import Recurrent
from schedc.weights.words import LANES, WORD_ROWS


@dataclass(frozen=True)
class StateLayout:
    """`layers` layers of `rows` sequences."""

    layers: int
    rows: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int

    @property
    def key_rows(self) -> int:
        """Rows of a head's state."""
        return _whole(self.key_dim)

    @property
    def panels(self) -> int:
        """Heads of q, of k and of v."""
        return 2 * self.key_heads + self.value_heads

    @property
    def window_rows(self) -> int:
        return (self.conv - 1) * _whole(self.panels)

    @property
    def sequence_rows(self) -> int:
        """Word rows of one sequence in one layer."""
        return self.value_heads * self.key_rows + self.window_rows

    @property
    def word_rows(self) -> int:
        return self.layers * self.rows * self.sequence_rows

    def of_sequence(self, words: np.ndarray, layer: int, row: int) -> np.ndarray:
        """A view of what one layer keeps of one sequence."""
        first = (layer * self.rows + row) * self.sequence_rows
        return words[first : first + self.sequence_rows]

    def sides(self) -> list[tuple[int, int, int]]:
        """First panel, heads and size of a head, of q, k and v."""
        return [
            (0, self.key_heads, self.key_dim),
            (self.key_heads, self.key_heads, self.key_dim),
            (2 * self.key_heads, self.value_heads, self.value_dim),
        ]


def _whole(rows: int) -> int:
    return -(-rows // WORD_ROWS) * WORD_ROWS


def _of_kda(mixer: Kda) -> tuple[int, int]:
    return mixer.heads, mixer.heads


def _of_gated_delta(mixer: GatedDelta) -> tuple[int, int]:
    return mixer.key_heads, mixer.value_heads


STATE_HEADS: dict[str, Callable[..., tuple[int, int]]] = {"kda": _of_kda, "gated_delta": _of_gated_delta}
"""Kind of mixer → its key and value heads."""


def keeps_state(mixer: Mixer) -> bool:
    """Whether a mixer keeps a state, and not something of every token."""
    return mixer.kind in STATE_HEADS


def state_layout(mixer: Mixer, layers: int, rows: int) -> StateLayout:
    assert isinstance(mixer, Kda | GatedDelta)
    keys, values = STATE_HEADS[mixer.kind](mixer)
    return StateLayout(layers, rows, keys, values, mixer.key_dim, mixer.value_dim, mixer.conv)


def write_state(words: np.ndarray, layout: StateLayout, layer: int, row: int, kept: Recurrent) -> None:
    """Put f32[value_heads, value_dim, key_dim] and f32[conv - 1, channels] in their place, in place."""
    own = layout.of_sequence(words, layer, row).view(np.float32)
    heads, windows = _views(own, layout)
    own[...] = 0.0
    heads[:, : layout.key_dim, : layout.value_dim] = np.swapaxes(np.asarray(kept.state), 1, 2)
    at = 0
    for first, count, size in layout.sides():
        side = np.asarray(kept.windows)[:, at : at + count * size]
        windows[:, first : first + count, :size] = side.reshape(-1, count, size)
        at += count * size


def read_state(words: np.ndarray, layout: StateLayout, layer: int, row: int) -> Recurrent:
    """The inverse of `write_state`."""
    heads, windows = _views(layout.of_sequence(words, layer, row).view(np.float32), layout)
    sides = [windows[:, first : first + count, :size] for first, count, size in layout.sides()]
    state = np.swapaxes(heads[:, : layout.key_dim, : layout.value_dim], 1, 2)
    return Recurrent(state, np.concatenate([side.reshape(len(side), -1) for side in sides], axis=1))


def _views(own: np.ndarray, layout: StateLayout) -> tuple[np.ndarray, np.ndarray]:
    """f32[value_heads, key_rows, 128] and f32[conv - 1, panels padded, 128]."""
    heads = layout.value_heads * layout.key_rows
    states = own[:heads].reshape(layout.value_heads, layout.key_rows, LANES)
    return states, own[heads:].reshape(layout.conv - 1, -1, LANES)

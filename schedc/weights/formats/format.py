"""What a format is: the sections of words that one panel of 128 columns takes, and what they stand for.

A section is a table of numbers of 4, 8, 16 or 32 bits, one a group of inputs of a column (group 0: one a column).
A panel holds its sections one after the other. In each, a lane is a column and the numbers go down the word rows,
32 / bits of them in a word, low bits first, zeros up to a multiple of 8 word rows.

Scales are kept by column even where a checkpoint has them by tensor or by block of columns. So any choice of columns
(heads, shards of a device, gate beside up) keeps codes and scales as they are; inputs can be cut at whole groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, lcm

import numpy as np

from schedc.weights.words import LANES, WORD_ROWS

Numbers = Mapping[str, np.ndarray]
"""By section, the bits of its numbers: uint8 (also for 4 bits, one a byte), uint16 or uint32 of [out, n]."""

_CONTAINERS = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}


@dataclass(frozen=True)
class Section:
    name: str
    bits: int
    group: int
    """Inputs that share a number; 0: all inputs of the column."""

    @property
    def container(self) -> np.dtype:
        return np.dtype(_CONTAINERS[self.bits])

    @property
    def per_word(self) -> int:
        return 32 // self.bits

    def numbers(self, depth: int) -> int:
        return ceil(depth / self.group) if self.group else 1

    def rows(self, depth: int) -> int:
        """Word rows of a panel of `depth` inputs."""
        return ceil(self.numbers(depth) / (self.per_word * WORD_ROWS)) * WORD_ROWS

    def to_words(self, numbers: np.ndarray, depth: int) -> np.ndarray:
        """Bits [out, n] → int32[out, word rows]."""
        padded = np.zeros((len(numbers), self.rows(depth) * self.per_word), self.container)
        padded[:, : numbers.shape[1]] = numbers
        if self.bits == 4:
            padded = padded[:, 0::2] | padded[:, 1::2] << 4
        return padded.view(np.int32)

    def from_words(self, words: np.ndarray, depth: int) -> np.ndarray:
        """int32[out, word rows] → bits [out, n]."""
        numbers = np.ascontiguousarray(words).view(self.container)
        if self.bits == 4:
            numbers = np.stack([numbers & 15, numbers >> 4], axis=-1).reshape(len(words), -1)
        return numbers[:, : self.numbers(depth)]


@dataclass(frozen=True)
class Format:
    """`decode` gives f32[out, in] of the numbers; `nearest` the numbers of an f32[out, in], by the rule it states."""

    name: str
    sections: tuple[Section, ...]
    decode: Callable[[Numbers], np.ndarray]
    nearest: Callable[[np.ndarray], dict[str, np.ndarray]]
    finer_than: tuple[str, ...] = ()
    """Formats that this one is with every group of inputs cut in parts, each with the group's scale."""

    @property
    def exact(self) -> bool:
        """Whether floating-point weights need no scales to be stored so: bf16 and f32."""
        return len(self.sections) == 1

    @property
    def group(self) -> int:
        """Inputs are cut at multiples of this."""
        return lcm(*(section.group or 1 for section in self.sections))

    def panel_rows(self, depth: int) -> int:
        """Word rows of one panel of 128 columns."""
        return sum(section.rows(depth) for section in self.sections)

    def cut(self, numbers: Numbers) -> dict[str, np.ndarray]:
        """The numbers of a format in `finer_than`, as this one's: scales repeated, codes as they are."""
        inputs, finer = numbers["codes"].shape[1], dict(numbers)
        for section in self.sections:
            if section.group > 1:
                wanted = section.numbers(inputs)
                repeats = ceil(wanted / numbers[section.name].shape[1])
                finer[section.name] = np.repeat(numbers[section.name], repeats, axis=1)[:, :wanted]
        return finer

    def bytes(self, depth: int, columns: int) -> int:
        return self.panel_rows(depth) * 4 * columns

    def to_words(self, numbers: Numbers, depth: int) -> np.ndarray:
        """int32[out, panel rows]: the words of each column, top down."""
        return np.concatenate([section.to_words(numbers[section.name], depth) for section in self.sections], axis=1)

    def from_words(self, words: np.ndarray, depth: int) -> dict[str, np.ndarray]:
        numbers, row = {}, 0
        for section in self.sections:
            numbers[section.name] = section.from_words(words[:, row : row + section.rows(depth)], depth)
            row += section.rows(depth)
        return numbers


def join_panels(columns: np.ndarray) -> np.ndarray:
    """int32[panels · 128, panel rows] → int32[panels · panel rows, 128]: columns become lanes."""
    by_panel = columns.reshape(-1, LANES, columns.shape[1])
    return by_panel.transpose(0, 2, 1).reshape(-1, LANES)


def split_panels(words: np.ndarray, panel_rows: int) -> np.ndarray:
    """The inverse of `join_panels`."""
    by_panel = words.reshape(-1, panel_rows, LANES)
    return np.ascontiguousarray(by_panel.transpose(0, 2, 1)).reshape(-1, panel_rows)

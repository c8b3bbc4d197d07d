"""Some rows of a mapped array, such as one part of every head, read when they are asked for."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """Rows `rows` of `values`, in this order. Slices of it read no more than their own rows."""

    values: np.ndarray
    rows: npt.NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.rows), *self.values.shape[1:]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.values[self.rows[rows]]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.values[self.rows], dtype)


def part_of_every_group(groups: int, sizes: list[int], part: int) -> npt.NDArray[np.int64]:
    """Rows of one part, where each of `groups` has `sizes` rows of every part, one part after the other.

    Two groups of sizes [2, 1]: q0 q1 g q0 q1 g, so of part 0 the rows 0, 1, 3, 4, and of part 1 the rows 2 and 5.
    """
    first = np.arange(groups)[:, None] * sum(sizes) + sum(sizes[:part])
    return (first + np.arange(sizes[part])).reshape(-1)

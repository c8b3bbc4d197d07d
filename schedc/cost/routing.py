"""Which experts the rows of a step choose, and so how many different ones a device fetches: a distribution.

Experts lie in groups of consecutive numbers, one group a device or a few devices. Every row chooses `top_k` different
experts; a device fetches those of its group that any row has chosen. Devices exchange what the experts gave in every
layer, so the group with the most decides how long the layer takes: `slowest` is the expectation of the largest number
over the groups, `mean` that of one group.

How rows choose:

- `uniform`: all experts alike, every row by itself. The mean is exact, m · (1 - (1 - k/E)^rows); the largest is drawn.
- `zipf:S`: the n-th most popular expert of a layer with weight n^-S, without replacement (Gumbel's trick: the k largest
  of log weight + noise), popularity dealt over the groups anew in every sample.
- a file of recorded choices: one line a row and layer with its `top_k` expert numbers, or an .npy array of integers
  [samples, top_k]. Rows that decode together are consecutive lines, and keep being so: what they share is in them.

Draws are made with a seed, `SAMPLES` of them; their standard error is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from schedc.errors import UserError

if TYPE_CHECKING:
    import numpy as np

SAMPLES = 20_000
"""Layers that are drawn. Of Zipf's, which are dearer, a tenth."""

Which = Literal["mean", "slowest"]


@dataclass(frozen=True)
class Routing:
    """`kind` and its parameter: the exponent of Zipf's law, or the recorded choices by row and place."""

    kind: Literal["uniform", "zipf", "recorded"] = "uniform"
    exponent: float = 0.0
    choices: tuple[tuple[int, ...], ...] = ()
    name: str = "uniform"


UNIFORM = Routing()


@dataclass(frozen=True)
class Load:
    """What a predicted step meets: how rows are routed, and which device of the group is looked at."""

    routing: Routing = UNIFORM
    experts: Which = "slowest"
    seed: int = 0


DEFAULT_LOAD = Load()


@dataclass(frozen=True)
class Distinct:
    """Expected different experts a device, and the standard error of the expectation (0: exact)."""

    mean: float
    slowest: float
    error: float

    def of(self, which: Which) -> float:
        return self.mean if which == "mean" else self.slowest


def parse_routing(text: str) -> Routing:
    """`uniform`, `zipf:1.1` or a file. Raises UserError."""
    if text == "uniform":
        return UNIFORM
    if text.startswith("zipf:"):
        try:
            exponent = float(text.removeprefix("zipf:"))
        except ValueError:
            exponent = -1.0
        if not 0.0 <= exponent < 100.0:
            raise UserError(f"--routing {text}: the exponent must be a number of at least 0, as in zipf:1.1")
        return Routing("zipf", exponent, name=f"zipf:{exponent:g}")
    path = Path(text)
    if not path.is_file():
        raise UserError(f"--routing {text}: is neither uniform nor like zipf:1.1, and no file of that name is there")
    return Routing("recorded", choices=_read(path), name=path.name)


def _read(path: Path) -> tuple[tuple[int, ...], ...]:
    if path.suffix == ".npy":
        import numpy as np

        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read: {error}") from None
        if array.ndim != 2 or array.dtype.kind not in "iu":
            raise UserError(f"{path}: holds {array.dtype}{list(array.shape)}; it must be integers [samples, top_k]")
        return tuple(tuple(int(expert) for expert in row) for row in array)
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].replace(",", " ").split()
        if not all(word.isdecimal() for word in words):
            raise UserError(f"{path}:{number}: must be expert numbers with spaces or commas between them")
        if words:
            rows.append(tuple(int(word) for word in words))
    return tuple(rows)


@lru_cache(maxsize=512)
def distinct_experts(load: Load, experts: int, top_k: int, rows: int, members: int) -> Distinct:
    """Of groups of `members` of `experts`, `rows` rows choosing `top_k` each.

    Raises UserError for recorded choices that are not of this router.
    """
    if rows == 0:
        return Distinct(0.0, 0.0, 0.0)
    groups = -(-experts // members)
    mean = members * (1.0 - (1.0 - top_k / experts) ** rows)
    kind = load.routing.kind
    if kind == "uniform" and (groups == 1 or top_k == experts):
        return Distinct(mean, mean, 0.0)
    if kind == "uniform":
        counts = _uniform(load.seed, experts, top_k, rows, members, groups)
    elif kind == "zipf":
        counts = _zipf(load.seed, load.routing.exponent, experts, top_k, rows, members, groups)
    else:
        counts = _recorded(load.routing, experts, top_k, rows, members, groups)
    largest = counts.max(axis=1)
    error = float(largest.std()) / len(largest) ** 0.5
    return Distinct(mean if kind == "uniform" else float(counts.mean()), float(largest.mean()), error)


def _uniform(seed: int, experts: int, top_k: int, rows: int, members: int, groups: int) -> np.ndarray:
    """[samples, groups]. Of the c that a row takes of a group of which d are taken, those of d are hypergeometric."""
    import numpy as np

    random = np.random.default_rng(seed)
    sizes = [min(members, experts - group * members) for group in range(groups)]
    taken = np.zeros((SAMPLES, groups), dtype=np.int64)
    for _ in range(rows):
        chosen = random.multivariate_hypergeometric(sizes, top_k, size=SAMPLES, method="marginals")
        again = random.hypergeometric(taken, np.array(sizes) - taken, chosen)
        taken += chosen - again
    return taken


def _zipf(seed: int, exponent: float, experts: int, top_k: int, rows: int, members: int, groups: int) -> np.ndarray:
    import numpy as np

    random = np.random.default_rng(seed)
    weights = -exponent * np.log(np.arange(1, experts + 1))
    counts = []
    for _ in range(SAMPLES // 10):
        places = random.permutation(experts)
        keys = weights + random.gumbel(size=(rows, experts))
        chosen = np.unique(np.argpartition(-keys, top_k - 1, axis=1)[:, :top_k])
        counts.append(np.bincount(places[chosen] // members, minlength=groups))
    return np.array(counts)


def _recorded(routing: Routing, experts: int, top_k: int, rows: int, members: int, groups: int) -> np.ndarray:
    """Every `rows` consecutive lines are a sample; what is left over at the end is left out."""
    import numpy as np

    choices: Sequence[tuple[int, ...]] = routing.choices
    for number, row in enumerate(choices, 1):
        if len(set(row)) != top_k or len(row) != top_k or max(row) >= experts:
            raise UserError(
                f"{routing.name}: choice {number} is {' '.join(map(str, row))}; this router takes {top_k} different "
                f"experts of 0 to {experts - 1}"
            )
    if len(choices) < rows:
        raise UserError(f"{routing.name}: has {len(choices)} choices, fewer than the {rows} rows of a step")
    array = np.array(choices)[: len(choices) // rows * rows].reshape(-1, rows * top_k)
    return np.array([np.bincount(np.unique(sample) // members, minlength=groups) for sample in array])

"""Which experts a kernel has chosen, beside the scores that the reference has for them.

Between two that are nearly equal rounding decides, and either is right. If every score differs by at most d from the
exact one, then so does the p-th largest of them, and what a kernel has in place p has an exact score within 2 d of the
p-th largest exact one: that is what is asked here. Of groups it is asked that the winner's could have been kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schedc.compiler.noted import Copies, held, limit_of, of_cache
from schedc.compiler.recording import Recorded
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.feed_forwards.router import Router
from schedc.spec.model import ModelSpec

WINNERS = "mlp.winners"


@dataclass(frozen=True)
class Ranked:
    """Of one row on one device. `ids` are the kernel's, `best` those of the exact scores, the best first.

    `off` f32[top_k]: how far the score of each is from what it may be in its place, `limit` how far it may be.
    """

    row: int
    device: int | None
    ids: np.ndarray
    best: np.ndarray
    off: np.ndarray
    limit: float

    @property
    def wrong(self) -> int | None:
        """The first place whose winner cannot be explained by rounding."""
        places = np.flatnonzero(~(self.off <= self.limit))
        return int(places[0]) if len(places) else None

    @property
    def note(self) -> str:
        """What rounding has decided otherwise."""
        places = np.flatnonzero(self.ids != self.best)
        if self.wrong is not None or not len(places):
            return ""
        names = ", ".join(f"{self.ids[place]} for {self.best[place]}" for place in places)
        return f"nearly equal: {names}"


def ranked(copies: Copies, one: Recorded, trip: int, spec: ModelSpec, active: tuple[bool, ...]) -> Iterator[Ranked]:
    """Of every row that counts, on every device that says its winners."""
    layer, rows = one.layers[trip], np.array(active)
    router = _moe(spec, layer).router
    exact, rounded = (notes.layers[layer]["mlp.choices"] for notes in (copies.exact, copies.rounded))
    limit = 2 * limit_of(spec, exact[rows], rounded[rows], of_cache(spec, one, layer)) if rows.any() else 0.0
    for device, ids in _by_device(copies, one, trip, spec):
        for row in np.flatnonzero(rows):
            best = best_of(router, exact[row], ids.shape[1])
            off = distances(router, exact[row], ids[row], limit)
            yield Ranked(int(row), device, ids[row], best, off, limit)


def winners_of(copies: Copies, spec: ModelSpec, active: tuple[bool, ...]) -> dict[int, np.ndarray]:
    """By layer int32[rows, top_k], as the first device that says them has them: to be given to the reference, which
    says itself (-1) who wins in rows that do not count, and where they are no experts."""
    found: dict[int, np.ndarray] = {}
    for one in copies.records:
        if one.value.meaning == WINNERS and one.array:
            for trip, layer in enumerate(one.layers):
                _, ids = next(_by_device(copies, one, trip, spec))
                sane = np.array(active) & np.array([_are_experts(row, _moe(spec, layer).experts) for row in ids])
                found[layer] = np.where(sane[:, None], ids, -1).astype(np.int32)
    return found


def _by_device(copies: Copies, one: Recorded, trip: int, spec: ModelSpec) -> Iterator[tuple[int | None, np.ndarray]]:
    """int64[rows, top_k]."""
    layer = one.layers[trip]
    words = copies.words[one.array]
    words = words.reshape(len(words), -1, 1, one.rows, words.shape[-1])[:, trip]
    shape = len(copies.exact.layers[layer][WINNERS]), _moe(spec, layer).top_k
    for device, part in enumerate(words):
        ids, there = held(part, one.value, device, 0, shape)
        if there.all():
            yield device if len(words) > 1 else None, ids.astype(np.int64)


def _moe(spec: ModelSpec, layer: int) -> Moe:
    found = next(at for at in spec.iter_layers() if at.layer == layer).block.feed_forward
    assert isinstance(found, Moe)
    return found


def _are_experts(ids: np.ndarray, experts: int) -> bool:
    return bool((ids >= 0).all() and (ids < experts).all()) and len(set(ids.tolist())) == len(ids)


def best_of(router: Router, choices: np.ndarray, top_k: int) -> np.ndarray:
    """Of f32[experts] the ids of the largest in the best groups, the lower of equal ones first."""
    groups = _group_scores(router, choices)
    kept = np.argsort(-groups, kind="stable")[: router.groups_kept if router.groups > 1 else 1]
    masked = np.where(np.isin(_group_of(router, len(choices)), kept), choices, -np.inf)
    return np.argsort(-masked, kind="stable")[:top_k]


def distances(router: Router, choices: np.ndarray, ids: np.ndarray, limit: float) -> np.ndarray:
    """How far the winners' scores are from what they can be, in their places; infinite for what is no list of experts.

    Of groups that are within the limit of the last that is kept any may be the one: a winner lies between the p-th
    largest of those that are certainly kept and of those that may be.
    """
    if not _are_experts(ids, len(choices)):
        return np.full(len(ids), np.inf)
    groups, of = _group_scores(router, choices), _group_of(router, len(choices))
    possible = certain = np.ones(len(groups), bool)
    if router.groups > 1:
        summed = 2 if router.group_score == "top2_sum" else 1
        ordered = np.sort(groups)[::-1]
        possible = groups >= ordered[router.groups_kept - 1] - summed * limit
        if router.groups_kept < len(groups):
            certain = possible & (groups > ordered[router.groups_kept] + summed * limit)
    most, least = (_ordered(choices[kept[of]], len(ids)) for kept in (possible, certain))
    off = np.maximum(0.0, np.maximum(choices[ids] - most, least - choices[ids]))
    return np.where(possible[of[ids]], off, np.inf)


def _ordered(choices: np.ndarray, count: int) -> np.ndarray:
    """The `count` largest, the largest first; -inf where there are fewer."""
    found = np.sort(choices.astype(np.float64))[::-1][:count]
    return np.pad(found, (0, count - len(found)), constant_values=-np.inf)


def _group_of(router: Router, experts: int) -> np.ndarray:
    return np.arange(experts) // (experts // router.groups)


def _group_scores(router: Router, choices: np.ndarray) -> np.ndarray:
    grouped = np.sort(choices.reshape(router.groups, -1), axis=1)[:, ::-1]
    return grouped[:, : 2 if router.group_score == "top2_sum" else 1].sum(1)

"""Ten thousand small random problems: what fits is valid, what cannot fit has no packing at all.

And larger ones that are made from a packing, so that they fit.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from schedc.ir.allocate.exact import exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Item, Problem, Span
from schedc.ir.allocate.validate import validate

BATCHES, EACH = 20, 500
PLACEMENTS = 4000
"""The oracle gives up after so many placements."""


def spans(rng: random.Random) -> tuple[Span, ...]:
    """One span, or two or three as of a loop or of a switch."""
    points = sorted(rng.sample(range(11), 2 * rng.choice((1, 1, 1, 2, 2, 3))))
    return tuple(zip(points[::2], points[1::2], strict=True))


def problem(rng: random.Random) -> Problem:
    largest = rng.choice((3, 6, 12))
    aligns = rng.choice(((1,), (1,), (1, 2), (2, 4), (4,), (1, 3)))
    items: list[Item] = []
    for i in range(rng.randint(2, 7)):
        align = rng.choice(aligns)
        item = Item(f"b{i}", spans(rng), rng.randint(1, largest), align)
        if rng.random() < 0.12:
            fixed = Item(item.name, item.spans, item.size, align, rng.randrange(0, 9, align))
            if not any(meets(fixed, other) and overlap(fixed, other) for other in items):
                item = fixed
        elif items and rng.random() < 0.15:
            item = Item(item.name, items[-1].spans, items[-1].size, items[-1].align)
        items.append(item)
    return Problem(tuple(items))


def oracle(problem: Problem, height: int) -> bool | None:
    """Whether there is a packing, by trying every address of every item; None if that takes too long."""
    order = sorted(problem.items, key=lambda item: -item.size)
    placed: list[tuple[Item, int]] = []
    budget = PLACEMENTS

    def rest(i: int) -> bool:
        nonlocal budget
        if i == len(order):
            return True
        item = order[i]
        for row in range(0, height - item.size + 1, item.align) if item.fixed is None else (item.fixed,):
            budget -= 1
            if budget < 0:
                raise TimeoutError
            if row % item.align == 0 and row + item.size <= height and all(
                row + item.size <= at or at + other.size <= row or not meets(item, other) for other, at in placed
            ):  # fmt: skip
                placed.append((item, row))
                if rest(i + 1):
                    return True
                placed.pop()
        return False

    try:
        return rest(0)
    except TimeoutError:
        return None


def overlap(a: Item, b: Item) -> bool:
    if a.fixed is None or b.fixed is None:
        return False
    return bool(set(range(a.fixed, a.fixed + a.size)) & set(range(b.fixed, b.fixed + b.size)))


def meets(a: Item, b: Item) -> bool:
    return any(set(range(*x)) & set(range(*y)) for x in a.spans for y in b.spans)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_answer_is_right(batch):
    rng = random.Random(batch)
    seen: Counter[tuple[str, bool | None]] = Counter()
    searched = 0
    for _ in range(EACH):
        case = problem(rng)
        floor = case.floor()
        high = max(case.height(greedy(case)), floor)
        height = rng.choice((floor, floor, floor + 1, floor + 2, high - 1, high, rng.randint(floor, high)))
        answer = exact(case, height, 10.0)
        truth = oracle(case, height)
        seen[answer.kind, truth] += 1
        searched += answer.kind == "cannot-fit" and answer.nodes > 1
        if answer.kind == "fits":
            assert validate(case, answer.addresses, height) == []
        assert (answer.kind, truth) in {
            ("fits", True), ("fits", None), ("cannot-fit", False), ("cannot-fit", None),
        }, (case, height)  # fmt: skip
    assert seen["fits", True] > EACH // 2
    assert seen["cannot-fit", False] > EACH // 10
    assert searched > EACH // 20, "of those that cannot fit, some are decided by search and not by the peak"
    assert seen["fits", None] + seen["cannot-fit", None] < EACH // 10


def packed(rng: random.Random) -> tuple[Problem, int]:
    """A problem cut out of a full rectangle: now and then some neighbouring lanes end and are cut anew.

    Some buffers that take the same rows one after the other become one of several spans; some stay where they are.
    """
    lanes, unit = rng.randint(3, 7), rng.choice((1, 1, 2, 4))
    height, end = lanes * rng.choice((4, 8)), rng.randint(8, 30)
    cuts = sorted({0, height, *rng.sample(range(1, height), lanes - 1)})
    since = dict.fromkeys(pairwise(cuts), 0)
    boxes: list[tuple[tuple[int, int], Span]] = []
    for now in range(1, end):
        lows = sorted(since)
        at = rng.randrange(len(lows))
        ended = lows[at : at + rng.randint(1, 3)]
        boxes += [(lane, (since.pop(lane), now)) for lane in ended]
        low, high = ended[0][0], ended[-1][1]
        edges = sorted({low, high, *rng.sample(range(low + 1, high), min(rng.randint(0, 2), high - low - 1))})
        since |= dict.fromkeys(pairwise(edges), now)
    boxes += [(lane, (start, end)) for lane, start in since.items()]
    spans: dict[tuple[int, int, int], list[Span]] = {}
    for number, (lane, span) in enumerate(boxes):
        same = [key for key in spans if key[:2] == lane and spans[key][-1][1] < span[0]]
        key = rng.choice(same) if same and rng.random() < 0.7 else (*lane, number)
        spans.setdefault(key, []).append(span)
    fixed = rng.choice((0.0, 0.0, 0.1, 0.3))
    return Problem(
        tuple(
            Item(f"b{number}", tuple(several), (high - low) * unit, unit, low * unit if rng.random() < fixed else None)
            for (low, high, number), several in spans.items()
        )
    ), height * unit


@pytest.mark.parametrize("batch", range(8))
def test_a_problem_that_is_made_from_a_packing_is_never_called_impossible(batch):
    rng = random.Random(1000 + batch)
    found = 0
    for _ in range(400):
        case, height = packed(rng)
        answer = exact(case, height, 0.0)
        assert answer.kind != "cannot-fit", (case, height)
        if answer.kind == "fits":
            found += 1
            assert validate(case, answer.addresses, height) == []
    assert found > 300

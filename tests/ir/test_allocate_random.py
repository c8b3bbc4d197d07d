"""Ten thousand small random problems: what fits is valid, what cannot fit has no packing at all."""

from __future__ import annotations

import random
from collections import Counter

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

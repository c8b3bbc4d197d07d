"""What the search over linear facts proves of whole numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest

from schedc.ir.verify.linear import Atoms, Lin, Value, add, scale, sub
from schedc.ir.verify.logic import Condition, Logic

Meaning = Callable[[Sequence[int]], int]


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16, 64])
def test_a_chunk_of_a_tile_lies_within_it_whatever_rows_a_chunk_has(rows: int) -> None:
    """position % 512 // 16 is one of the 32 chunks of a tile: a bound that only holds for whole numbers."""
    atoms = Atoms()
    position = Lin(0, ((atoms.atom("position", 0, 4095, "position"), 1),))
    chunk = scale(atoms.floordiv(atoms.mod(position, 512), 16), rows)
    logic = Logic(atoms)
    assert logic.proves(chunk, ())
    assert logic.proves(sub(31 * rows, chunk), ())
    assert not logic.proves(add(chunk, -1), ())
    assert not logic.proves(sub(31 * rows - 1, chunk), ())


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
@pytest.mark.parametrize("active", [1, 16])
def test_a_difference_of_quotients_is_bounded_by_the_window(shift: int, active: int) -> None:
    """Of the tiles of 512 tokens that four devices have in turn, one at most is in sight of a window of 512."""
    atoms = Atoms()
    logic = Logic(atoms)
    position, flag = (Lin(0, ((atoms.atom(name, 0, high, name), 1),)) for name, high in (("p", 32767), ("a", 1)))

    def own(token: Value, other: int) -> Value:
        return atoms.floordiv(add(atoms.floordiv(token, 512), other), 4)

    # Other devices ask about the same position.
    others = [
        sub(own(position, other), own(logic.pick("max", add(position, -511), 0, ()), other)) for other in range(4)
    ]
    count = logic.pick("min", others[shift], atoms.mul(flag, active), ())
    trips = logic.pick("max", count, 0, ())
    assert logic.proves(sub(1, trips), ())
    assert logic.proves(sub(9, trips), ())
    assert not logic.proves(sub(0, trips), ())


def _value(rng: random.Random, atoms: Atoms, logic: Logic, inputs: list[int], depth: int) -> tuple[Value, Meaning]:
    """A value, and what it is for numbers of the inputs."""
    kind = rng.choice(("input", "input", "+", "-", "*", "//", "%", "min", "max")) if depth else "input"
    if kind == "input":
        i = rng.randrange(len(inputs))
        return Lin(0, ((inputs[i], 1),)), lambda numbers: numbers[i]
    (a, of_a), (b, of_b) = (_value(rng, atoms, logic, inputs, depth - 1) for _ in range(2))
    by, less = rng.randint(2, 5), rng.randint(0, 4)
    match kind:
        case "+":
            return add(a, b), lambda n: of_a(n) + of_b(n)
        case "-":
            return sub(a, b), lambda n: of_a(n) - of_b(n)
        case "*":
            return scale(a, by), lambda n: of_a(n) * by
        case "//":
            return atoms.floordiv(a, by), lambda n: of_a(n) // by
        case "%":
            return atoms.mod(a, by), lambda n: of_a(n) % by
        case "min":
            return logic.pick("min", a, b, ()), lambda n: min(of_a(n), of_b(n))
        case _:
            return logic.pick("max", add(a, -less), 0, ()), lambda n: max(of_a(n) - less, 0)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_what_is_proven_is_true_of_all_numbers(count: int) -> None:
    """Of values of random expressions, under random facts; half of the lower bounds that are true are proven."""
    proven = true = 0
    for seed in range(count):
        rng = random.Random(seed)
        atoms = Atoms()
        logic = Logic(atoms)
        inputs = [atoms.atom(name, 0, 11, name) for name in "xy"]
        values = [_value(rng, atoms, logic, inputs, 3) for _ in range(3)]
        conditions = [
            (logic.compare(">=", values[i][0], bound), values[i][1], bound)
            for i in range(rng.randint(0, 2))
            for bound in (rng.randint(-4, 12),)
        ]
        facts = tuple(condition for condition, _, _ in conditions if isinstance(condition, Condition))
        worlds = [n for n in product(range(12), repeat=2) if all(of(n) >= bound for _, of, bound in conditions)]
        if not worlds:
            continue
        goal, of_goal = values[2]
        least = min(of_goal(world) for world in worlds)
        for bound in range(least - 2, least + 4):
            shown = logic.proves(sub(goal, bound), facts)
            assert not shown or bound <= least, f"seed {seed}: {atoms.text(goal)} >= {bound} is not true"
            proven += shown
            true += bound <= least
    assert proven > 0.5 * true

"""Generation: which tokens and positions the kernel is given, and when a sequence ends."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedc.errors import UserError
from schedc.run.generate import check_prompts, generate


class Counting:
    """A decoder whose next token is the given one plus one; it remembers what it was given."""

    def __init__(self, rows: int, context: int) -> None:
        self.rows, self.context = rows, context
        self.spec = SimpleNamespace(num_layers=0)
        self.calls: list[tuple[list[int], list[int], list[bool]]] = []

    def step(self, tokens: list[int], positions: list[int], active: list[bool]) -> dict[str, Any]:
        self.calls.append((list(tokens), list(positions), list(active)))
        assert all(0 <= position < self.context for position in positions)
        return {"ids": np.where(active, np.array(tokens) + 1, -1)}

    def steps(
        self, count: int, tokens: list[int], positions: list[int], active: list[bool], ends: Collection[int]
    ) -> dict[str, Any]:
        self.ended_at = set(ends)
        given = list(tokens), list(positions), list(active)
        made = []
        for _ in range(count):
            ids = self.step(*given)["ids"]
            made.append(ids)
            _, positions, active = given
            on = [
                active[row] and ids[row] not in ends and positions[row] + 1 < self.context for row in range(self.rows)
            ]
            given = [int(said) for said in ids], [positions[row] + on[row] for row in range(self.rows)], on
        return {"ids": np.array(made)}


def run(
    decoder: Counting, prompts: list[list[int]], max_tokens: int, eos: set[int], steps_per_call: int = 1
) -> list[list[int | None]]:
    return list(generate(decoder, prompts, max_tokens, eos, steps_per_call))  # type: ignore[arg-type]


def test_the_first_step_takes_the_last_token_of_the_prompt() -> None:
    decoder = Counting(rows=1, context=100)
    assert run(decoder, [[5, 6, 7]], 3, set()) == [[8], [9], [10]]
    assert decoder.calls == [([7], [2], [True]), ([8], [3], [True]), ([9], [4], [True])]


def test_rows_end_on_their_own_and_unused_rows_are_inactive() -> None:
    decoder = Counting(rows=3, context=100)
    assert run(decoder, [[1, 2], [7]], 9, {4, 8}) == [[3, 8], [4, None]]
    assert [active for *_, active in decoder.calls] == [[True, True, False], [True, False, False]]
    assert [positions for _, positions, _ in decoder.calls] == [[1, 0, 0], [2, 1, 0]]


def test_a_sequence_ends_where_its_context_is_full() -> None:
    decoder = Counting(rows=2, context=4)
    assert run(decoder, [[1, 2, 3], [1]], 9, set()) == [[4, 2], [5, 3], [None, 4], [None, 5]]


@pytest.mark.parametrize("steps_per_call", [2, 3, 4, 9])
@pytest.mark.parametrize(("context", "max_tokens", "eos"), [(100, 5, {4, 80}), (100, 9, {4, 8}), (4, 9, set())])
def test_several_steps_a_call_make_the_same_tokens(
    steps_per_call: int, context: int, max_tokens: int, eos: set[int]
) -> None:
    prompts = [[1, 2], [7]]
    alone, several = Counting(3, context), Counting(3, context)
    assert run(several, prompts, max_tokens, eos, steps_per_call) == run(alone, prompts, max_tokens, eos)
    assert several.ended_at == eos
    assert len(several.calls) % steps_per_call == 0


def test_prompts_must_fit_the_kernel() -> None:
    check_prompts([[1, 2, 3]], rows=1, context=3)
    with pytest.raises(UserError) as caught:
        check_prompts([[], [1, 2, 3, 4]], rows=1, context=3)
    assert str(caught.value).splitlines() == [
        "2 prompts are more than the 1 rows of the kernel; compile with --rows",
        "prompt 1 is empty",
        "prompt 2 has 4 tokens, the kernel's context is 3; raise --context",
    ]

"""Guesses of a draft without a model."""

import pytest

from schedc.run.speculate import repeated


@pytest.mark.parametrize(
    ("tokens", "most", "guesses"),
    [
        ([5, 6, 7, 8, 5, 6], 3, [7, 8, 5]),  # What followed 5 6.
        ([1, 2, 9, 1, 2, 8, 1, 2], 1, [8]),  # The latest place.
        ([1, 2, 3, 9, 7, 2, 3, 4, 1, 2, 3], 1, [9]),  # The longest end before the latest place.
        ([1, 2, 3], 4, []),
        ([4], 4, []),
        ([4, 4, 4], 0, []),
    ],
)
def test_what_followed_the_last_tokens_is_guessed_again(tokens: list[int], most: int, guesses: list[int]) -> None:
    assert repeated(tokens, most) == guesses

"""Greedy text of one prompt, several tokens a step: guessed first, then verified by a kernel whose rows are tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from schedc.run.decoder import Decoder

Draft = Callable[[Sequence[int], int], Sequence[int]]
"""(tokens so far, the most that are wanted) → guesses of the next ones."""

LONGEST_REPEATED = 3
"""Tokens at the end that are looked for before."""


def repeated(tokens: Sequence[int], most: int) -> list[int]:
    """What followed the last tokens where they stood before, the longest of them and the latest place first.

    Prompt lookup decoding: a draft without a model, which is right where text repeats itself.
    """
    given = list(tokens)
    for length in range(min(LONGEST_REPEATED, len(given) - 1), 0, -1):
        end = given[-length:]
        for first in range(len(given) - length - 1, -1, -1):
            if given[first : first + length] == end:
                return given[first + length : first + length + most]
    return []


def generate_drafted(
    decoder: Decoder,
    prompt: Sequence[int],
    max_tokens: int,
    eos_ids: Collection[int] = (),
    draft: Draft = repeated,
) -> Iterator[list[int]]:
    """The new tokens of every step: those that greedy decoding would make one by one, whatever is guessed.

    A step takes the last token and guesses behind it. Each row says the token behind it; the first guess that it is not
    ends what is accepted. Ends behind one of `eos_ids`, after `max_tokens`, and where the context is full. Needs
    `prefill` first.
    """
    tokens, made, accepted = list(prompt), 0, None
    while made < max_tokens and len(tokens) <= decoder.context:
        position = len(tokens) - 1
        room = min(decoder.rows, decoder.context - position, max_tokens - made)
        given = [tokens[-1], *draft(tokens, room - 1)][:room]
        idle = decoder.rows - len(given)
        active = [True] * len(given) + [False] * idle
        said = np.asarray(decoder.step(given + [0] * idle, [position], active, accepted)["ids"])
        new: list[int] = []
        for row in range(len(given)):
            new.append(int(said[row]))
            if new[-1] in eos_ids or given[row + 1 : row + 2] != new[-1:]:
                break
        yield new
        if new[-1] in eos_ids:
            return
        tokens, made, accepted = tokens + new, made + len(new), len(new)

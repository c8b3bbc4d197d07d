"""Greedy text generation: the prompt by the reference, every new token by the kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from schedc.errors import UserError
from schedc.run.decoder import Decoder

if TYPE_CHECKING:
    from schedc.reference.reference import Reference


def load_kernel_source(source: str, name: str) -> ModuleType:
    """The generated kernel file as a module."""
    module = ModuleType(name)
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def check_prompts(prompts: Sequence[Sequence[int]], rows: int, context: int) -> None:
    """Raises UserError with everything that keeps these token ids from being decoded."""
    problems = []
    if len(prompts) > rows:
        problems.append(f"{len(prompts)} prompts are more than the {rows} rows of the kernel; compile with --rows")
    for number, ids in enumerate(prompts, 1):
        if not ids:
            problems.append(f"prompt {number} is empty")
        elif len(ids) > context:
            problems.append(
                f"prompt {number} has {len(ids)} tokens, the kernel's context is {context}; raise --context"
            )
    if problems:
        raise UserError("\n".join(problems))


def prefill(decoder: Decoder, reference: Reference, prompts: Sequence[Sequence[int]]) -> None:
    """Fill the kernel's caches with all tokens of the prompts but their last, which the first step takes."""
    for row, ids in enumerate(prompts):
        known = len(ids) - 1
        if known:
            _, cache = reference.prefill(ids[:-1])
            decoder.fill(row, cache.sequence(decoder.spec, 0, known))


def generate(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    eos_ids: Collection[int] = (),
    steps_per_call: int = 1,
) -> Iterator[list[int | None]]:
    """The next token of every prompt, step by step; None for those that have ended.

    A sequence ends behind one of `eos_ids`, after `max_tokens`, and where its context is full. Needs `prefill` first.
    Every call makes `steps_per_call` steps, also the last one, so that one number of steps is compiled; what is over
    is left out.
    """
    idle = decoder.rows - len(prompts)
    tokens = [ids[-1] for ids in prompts] + [0] * idle
    positions = [len(ids) - 1 for ids in prompts] + [0] * idle
    active = [True] * len(prompts) + [False] * idle
    left = max_tokens
    while left > 0 and any(active):
        if steps_per_call == 1:
            made = np.asarray(decoder.step(tokens, positions, active)["ids"])[None]
        else:
            made = np.asarray(decoder.steps(steps_per_call, tokens, positions, active, eos_ids)["ids"])[:left]
        left -= len(made)
        for ids in made:
            if not any(active):
                return
            yield [int(ids[row]) if active[row] else None for row in range(len(prompts))]
            for row in range(len(prompts)):
                if active[row]:
                    tokens[row] = int(ids[row])
                    positions[row] += 1
                    active[row] = tokens[row] not in eos_ids and positions[row] < decoder.context
        positions = [min(position, decoder.context - 1) for position in positions]

"""Proofs that have been made before: only of programs that were proven, and that took a while."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from schedc import __version__, cache, ir
from schedc.backends.pallas import memory
from schedc.cache.keys import code_digest, key_of
from schedc.ir.program import Program
from schedc.ir.text_print import print_program
from schedc.ir.verify import Limits, Statistics, Verdict

KIND = "proof"
LEAST_SECONDS = 0.5
"""Quicker proofs are made again."""
LEAST_OPERATIONS = 100
"""Programs with fewer are not looked up: proving them takes no longer."""


def proven_before(program: Program, limits: Limits) -> Verdict | None:
    """The verdict of an earlier proof of the same text, by the same code, within the same limits."""
    store = cache.active()
    if store is None or program.size < LEAST_OPERATIONS:
        return None
    kept = store.get(KIND, _key(program, limits))
    return None if kept is None else Verdict((), Statistics(**kept))


def keep(program: Program, limits: Limits, verdict: Verdict, seconds: float) -> None:
    """`seconds` is what the proof took."""
    store = cache.active()
    if store is not None and verdict.proven and seconds >= LEAST_SECONDS:
        label = f"{program.name}, {verdict.statistics.operations:,} operations, {seconds:.1f} s"
        store.put(KIND, _key(program, limits), asdict(verdict.statistics), label)


def _key(program: Program, limits: Limits) -> str:
    return key_of(
        {
            "program": print_program(program),
            "limits": {name: _plain(value) for name, value in vars(limits).items()},
            "schedc": __version__,
            "code": code_digest(Path(ir.__file__).parent, Path(memory.__file__)),
        }
    )


def _plain(value: Any) -> Any:
    """A function by its name and what is bound to it."""
    if isinstance(value, partial):
        return [_plain(value.func), list(value.args), value.keywords]
    return f"{value.__module__}.{value.__qualname__}" if callable(value) else value

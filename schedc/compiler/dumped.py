"""Which phases can be dumped, and what of a dump is worth looking at."""

from __future__ import annotations

import re
from typing import Any

from schedc.compiler.interpret import Run
from schedc.compiler.pipeline import Request
from schedc.compiler.recording import phases_of
from schedc.compiler.shrink import shrink
from schedc.errors import UserError

ALL = "all"

LAYER_KIND = re.compile(r"(_[0-9]+){2}$")
"""What stands behind the name of a phase where layers are of several kinds: run, and place in its pattern."""


def phases_to_dump(request: Request, phase: str) -> tuple[str, ...]:
    """The phases of the shrunk model, which is what is interpreted, that are asked for.

    `attend` is that of every kind of layer.

    Raises UserError for one that it does not have, or with which no value of the reference can be compared.
    """
    every = [found for _, found in phases_of(shrink(request).schedule.graph)]
    telling = tuple(found.name for found in every if any(not value.begins for value in found.values))
    if phase == ALL:
        return telling
    asked = tuple(name for name in telling if phase in (name, LAYER_KIND.sub("", name)))
    if asked:
        return asked
    why = (
        "leaves nothing that the reference has: it moves what others make"
        if phase in (found.name for found in every)
        else "the shrunk model, which is what is interpreted, has no such phase"
    )
    raise UserError(
        f"--dump {phase}: {why}; those that can be compared are {', '.join(telling)}, or all of them: {ALL}"
    )


def dumped(run: Run, phases: tuple[str, ...]) -> dict[str, Any]:
    """Of one run what was compared, in the order of execution: of the first step in which something differs up to the
    phase that does, as what is behind it follows from it; of the first step if nothing does."""
    first = next((one for one in run.dump if one["element"] is not None), None)
    step = 0 if first is None else first["step"]
    found = [one for one in run.dump if one["step"] == step]
    if first is not None:
        last = max(place for place, one in enumerate(found) if where_of(one) == where_of(first))
        found = found[: last + 1]
    steps = len({one["step"] for one in run.dump})
    return {"run": run.name, "phases": list(phases), "steps": steps, "first": first, "compared": found}


def where_of(one: dict[str, Any]) -> tuple[str, int | None]:
    """Phase and layer of what was compared."""
    return one["phase"], one["layer"]

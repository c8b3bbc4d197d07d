"""The process that interprets one kernel in one mode: `python -m schedc.compiler.interpret_worker request.json`.

It writes what it found to the file that the request names; races go to its output, where jax prints them. A wait that
does not end is noticed, and named by its line.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.load import HELPERS, load_kernel
from schedc.compiler.dump import Compared, compared
from schedc.compiler.recording import Recorded
from schedc.compiler.telling_steps import telling_steps
from schedc.compiler.trial import Trial, difference, problems
from schedc.lower.graph import shape_from_dict
from schedc.spec.model import ModelSpec
from schedc.weights.layout import from_dict


def main(request_file: str) -> None:
    request = json.loads(Path(request_file).read_text())
    answer = Answer(Path(request["answer"]))
    _watch_waits(answer, request["stuck_seconds"])
    try:
        _interpret(request, answer)
        answer.write(done=True)
    except Exception as error:
        answer.write(failure=f"{type(error).__name__}: {error}")


class Keeper:
    """Writes the arguments of the call that is about to be made, until a call went wrong: those stay."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.path, self.answer = path, answer

    def __call__(self, given: Mapping[str, Any]) -> None:
        if not self.answer.facts["problems"]:
            arrays: dict[str, Any] = {name: np.asarray(value) for name, value in given.items()}
            np.savez(self.path, **arrays)


class Answer:
    """What is known so far, in a file that is rewritten after every step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts: dict[str, Any] = {
            "problems": [],
            "steps": 0,
            "logits": 0.0,
            "logits_limit": 0.0,
            "cache": 0.0,
            "cache_limit": 0.0,
        }

    def write(self, **facts: Any) -> None:
        self.facts |= facts
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.facts))
        part.replace(self.path)


def _interpret(request: dict[str, Any], answer: Answer) -> None:
    jax.config.update("jax_disable_most_optimizations", True)  # Compiling takes longer than running.
    compat.exact_locations(HELPERS)
    spec = ModelSpec.model_validate(request["spec"])
    shape = shape_from_dict(request["shape"])
    records = tuple(Recorded.from_dict(one) for one in request["records"])
    trial = Trial(
        spec,
        shape,
        load_kernel(Path(request["kernel"])),
        [from_dict(layout) for layout in request["layouts"]],
        request["kv_tokens"],
        compat.interpret_params(request["mode"]),
        records=records,
    )
    keep = request.get("keep")
    if keep is not None:
        trial.decoder.before_call = Keeper(Path(keep), answer)
    steps = telling_steps(spec, shape, request["kv_tokens"])
    for number, (positions, active) in enumerate(steps):
        outcome = trial.step(positions, active)
        raced = compat.races_found()
        compat.reset_interpreter()
        found = difference(outcome, spec)
        for name in ("logits", "cache"):
            if getattr(found, name) / getattr(found, f"{name}_limit") >= answer.facts[name] / (
                answer.facts[f"{name}_limit"] or 1.0
            ):
                answer.facts |= {name: getattr(found, name), f"{name}_limit": getattr(found, f"{name}_limit")}
        lines = problems(outcome, spec)
        if records:
            lines = [*_dump(answer, number, list(compared(outcome, spec, records))), *lines]
        if keep is not None and not answer.facts["problems"]:
            np.savez(Path(keep).with_name("expected.npz"), logits=outcome.exact_logits, limit=found.logits_limit)
        answer.facts["problems"] += [f"step {number}: {line}" for line in lines]
        answer.write(steps=number + 1, steps_planned=len(steps), raced=answer.facts.get("raced", False) or raced)


def _dump(answer: Answer, step: int, found: list[Compared]) -> list[str]:
    """Keep what was compared, until something differs, which is a problem; what differs in later steps follows it."""
    dump = answer.facts.setdefault("dump", [])
    if any(one["element"] is not None for one in dump):
        return []
    dump += [{"step": step, **one.to_dict()} for one in found]
    first = next((one for one in found if one.element is not None), None)
    return [] if first is None else [first.line()]


def _watch_waits(answer: Answer, stuck_seconds: float) -> None:
    """End the process when the kernel stays in one wait: one device alone can then never leave it."""
    interpreter: Any = importlib.import_module("jax._src.pallas.mosaic.interpret.interpret_pallas_call")
    source_info: Any = importlib.import_module("jax._src.source_info_util")
    waiting: dict[str, Any] = {"since": None, "line": 0}

    def watched(wait: Callable[..., Any]) -> Callable[..., Any]:
        def entered(*arguments: Any, **named: Any) -> Any:
            info = named.get("source_info")
            frame = source_info.user_frame(info.traceback) if info is not None else None
            waiting["line"] = frame.start_line if frame is not None else 0
            waiting["since"] = time.monotonic()
            try:
                return wait(*arguments, **named)
            finally:
                waiting["since"] = None

        return entered

    interpreter.dma_wait = watched(interpreter.dma_wait)
    interpreter.semaphore_wait = watched(interpreter.semaphore_wait)

    def watch() -> None:
        while True:
            time.sleep(0.2)
            since = waiting["since"]
            if since is not None and time.monotonic() - since > stuck_seconds:
                answer.write(stuck_line=waiting["line"])
                sys.stdout.flush()
                os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])

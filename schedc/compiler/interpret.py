"""Check 3 of 5: interpret the kernel of a shrunk model of the same schedule, and compare it with the reference.

Both DMA modes run, each finds half of the faults that a schedule can have: `eager` copies when a transfer starts,
`on_wait` when it is waited for. Memory starts as NaN and the race detector watches. f32 weights separate mistakes from
rounding; the request's own format runs too.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from schedc.backends.pallas.aot.environment import compiler_environment, virtual_devices
from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.pipeline import Request, limits_of
from schedc.compiler.recording import Recorded, recorded, recording
from schedc.compiler.reproducer import INPUTS, KERNEL, write_reproducer
from schedc.compiler.shrink import Shrunk, shrink
from schedc.compiler.workers import Workers
from schedc.ir.allocate import allocate
from schedc.ir.program import BLOCKS, Phase, Program
from schedc.ir.text_print import print_op
from schedc.ir.verify import verify
from schedc.lower.graph import shape_to_dict
from schedc.schedule.build import capacity_rows
from schedc.target.target import Target
from schedc.weights.layout import to_dict

MODES = ("eager", "on_wait")
STUCK_SECONDS = 30.0
"""In one wait for so long is forever: a transfer takes milliseconds to interpret."""
SHOWN = 5
"""Problems of one run that are listed; the rest is counted."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """One kernel in one mode. `logits` and `cache`: largest difference to the exact reference, `…_limit` the largest
    that is allowed."""

    weights: str
    mode: str
    seconds: float
    steps: int
    logits: float
    logits_limit: float
    cache: float
    cache_limit: float
    problems: tuple[str, ...]
    dump: tuple[dict[str, Any], ...] = ()
    """If it is asked for, what was compared inside of every step (`dump.Compared`, with its step), all up to the first
    step in which something differs."""

    @property
    def name(self) -> str:
        return f"{self.weights}, {self.mode}"


@dataclass(frozen=True)
class InterpretReport:
    """What was interpreted and what is wrong. `model`: the shrunk model in a line; `shape_differences`: a diff of the
    schedule's shape, empty if the shrunk model has that of the large one."""

    model: str
    shape_differences: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Empty if every run agreed with the reference, without a race and to its end."""
        return tuple(f"{run.name}: {problem}" for run in self.runs for problem in run.problems)

    def lines(self) -> list[tuple[str, str]]:
        """(label, text) for a reader."""
        shape = f"differs in {len(self.shape_differences)} places" if self.shape_differences else "that of the model"
        table = [("shrunk model", self.model), ("schedule shape", shape)]
        for run in self.runs:
            verdict = f"{len(run.problems)} problems" if run.problems else "agrees, no races"
            table.append(
                (
                    run.name,
                    f"{verdict}; {run.steps} steps, {run.seconds:.0f} s; largest difference of logits {run.logits:.1e} "
                    f"(limit {run.logits_limit:.1e}), of the cache {run.cache:.1e} (limit {run.cache_limit:.1e})",
                )
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        runs = [{name: value for name, value in asdict(run).items() if name != "dump"} for run in self.runs]
        return asdict(self) | {"runs": runs, "problems": list(self.problems)}

    @property
    def telling(self) -> Run:
        """The first run with problems, else the first."""
        return next((run for run in self.runs if run.problems), self.runs[0])


def verify_model(
    request: Request,
    progress: Progress | None = None,
    seconds: float = 600,
    dump: Collection[str] = (),
    reproducer: Path | None = None,
) -> InterpretReport:
    """Interpret a shrunk model of `request` in processes of their own, which end after `seconds` at the latest.

    What the phases `dump` of the shrunk model leave is copied out and compared too, and all that was compared is kept.
    The first run with problems leaves its kernel and the arguments of the step that went wrong in the new folder
    `reproducer`.
    Raises what scheduling the model raises; what is wrong with the kernel is in the report. Takes a minute or two.
    """
    own = request.spec.quantization.weights
    formats = (
        ["f32"] if own == request.spec.kv.dtype == request.spec.quantization.operand_dtype == "f32" else ["f32", own]
    )
    shrunk = {name: shrink(request, "f32" if name == "f32" else None) for name in formats}
    programs = {name: addressed(small, request.target) for name, small in shrunk.items()}
    deadline, workers = time.monotonic() + seconds, Workers()

    def run(which: tuple[str, str]) -> Run:
        weights, mode = which
        if progress:
            progress(f"interpreting with {weights} weights, transfers {mode}")
        small, program, records = shrunk[weights], programs[weights], tuple[Recorded, ...]()
        refusals = verify(program, limits_of(request.target)).refusals
        if dump:
            made, records = recording(small, request.target, dump)
            small = replace(small, schedule=made)
            program = addressed(small, request.target)
        left = max(1.0, deadline - time.monotonic())
        found = interpret(small, program, mode, left, records, kept.get(which), workers)
        unproven = tuple(f"the proof refuses the shrunk schedule: {refusal}" for refusal in refusals)
        return replace(found, weights=weights, problems=(*unproven, *found.problems))

    every_run = [(weights, mode) for weights in formats for mode in MODES]
    with tempfile.TemporaryDirectory(prefix="schedc-kept-") as name:
        kept = {} if reproducer is None else {which: Path(name) / "-".join(which) for which in every_run}
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            try:
                runs = tuple(pool.map(run, every_run))
            except BaseException:
                workers.end()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        wrong = next((which for which, found in zip(every_run, runs, strict=True) if found.problems), None)
        if reproducer is not None and wrong is not None:
            found = runs[every_run.index(wrong)]
            small = shrunk[wrong[0]]
            records = recorded(small.schedule.graph, dump)
            write_reproducer(reproducer, kept[wrong], small, wrong[1], found.problems, records)
    return InterpretReport(_describe(shrunk[own]), shrunk[own].differences, runs)


def addressed(small: Shrunk, target: Target) -> Program:
    """The shrunk model's program with addresses."""
    program = allocate(small.schedule.program, capacity_rows(target))
    limit = ("vmem_limit_bytes", target.capability.vmem_usable_bytes)
    return replace(program, attributes=(*program.attributes, limit))


def interpret(
    small: Shrunk,
    program: Program,
    mode: str,
    seconds: float,
    records: tuple[Recorded, ...] = (),
    keep: Path | None = None,
    workers: Workers | None = None,
) -> Run:
    """Run `program`, a schedule of the small model with addresses, in a process of its own.

    `records`: what it copies out, to be compared. `keep`: the folder for the kernel, and the arguments of the step that
    goes wrong. `workers`: those of a run of several, which end together.
    """
    kernel = emit(program)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="schedc-interpret-") as name:
        folder = Path(name)
        file, question, answer, log = (folder / f for f in ("kernel.py", "request.json", "answer.json", "log.txt"))
        file.write_text(kernel.source, encoding="utf-8")
        request = {
            "kernel": str(file),
            "spec": small.spec.model_dump(mode="json"),
            "shape": shape_to_dict(small.shape),
            "kv_tokens": small.schedule.plan.kv_tokens,
            "layouts": [to_dict(layout) for layout in small.schedule.layouts],
            "mode": mode,
            "stuck_seconds": min(STUCK_SECONDS, seconds / 2),
            "answer": str(answer),
            "records": [one.to_dict() for one in records],
            "keep": None if keep is None else str(keep / INPUTS),
        }
        if keep is not None:
            keep.mkdir(parents=True)
            (keep / KERNEL).write_text(kernel.source, encoding="utf-8")
        question.write_text(json.dumps(request))
        command = [sys.executable, "-m", "schedc.compiler.interpret_worker", str(question)]
        environment = os.environ | compiler_environment(None) | virtual_devices(program.devices)
        with log.open("w") as output:
            code = (workers or Workers()).run(command, environment, output, seconds)
        facts = json.loads(answer.read_text()) if answer.exists() else {}
        text = log.read_text(errors="replace")
    ending = _ending(kernel, facts, code, seconds, text)
    problems = _races(kernel, facts, text) + ending + _left_semaphores(text) + facts.get("problems", [])
    shown = problems if len(problems) <= SHOWN else [*problems[:SHOWN], f"and {len(problems) - SHOWN} more"]
    measured = {key: facts.get(key, 0.0) for key in ("logits", "logits_limit", "cache", "cache_limit")}
    weights, dumped = small.spec.quantization.weights, tuple(facts.get("dump", ()))
    taken = time.monotonic() - began
    return Run(weights, mode, taken, facts.get("steps", 0), problems=tuple(shown), **measured, dump=dumped)


def _ending(kernel: Kernel, facts: dict[str, Any], code: int | None, seconds: float, log: str) -> list[str]:
    """Why the run did not come to its end, if it did not."""
    if "stuck_line" in facts:
        return [f"hangs in step {facts['steps']}: {_place(kernel, facts['stuck_line'])} never ends"]
    if "failure" in facts:
        return [f"failed in step {facts['steps']}: {facts['failure'].strip()}"]
    if facts.get("done"):
        return []
    if code is None:
        return [f"no answer after {seconds:.0f} s, {facts.get('steps', 0)} steps done"]
    ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    last = log.strip().splitlines()[-1:] or ["no output"]
    return [f"the interpreter's process ended with {ended}: {last[0]}"]


def _races(kernel: Kernel, facts: dict[str, Any], log: str) -> list[str]:
    """A line for every pair of places that raced, as the race detector printed them."""
    pairs = []
    for block in log.split("RACE DETECTED")[1:]:
        accesses = re.findall(r"(read|write) of .*?kernel\.py:(\d+)", block, re.DOTALL)[:2]
        pair = " and ".join(f"the {access} in {_place(kernel, int(line))}" for access, line in accesses)
        if pair and pair not in pairs:
            pairs.append(pair)
    if not pairs and facts.get("raced"):
        return ["a race of accesses the interpreter does not name"]
    return [f"race: {pair}" for pair in pairs]


def _left_semaphores(log: str) -> list[str]:
    """What the interpreter prints of semaphores at the end of a step; a TPU halts there."""
    left = re.findall(r"Semaphore (\d+) has non-zero count for .* at kernel exit: (-?\d+)", log)
    return [f"semaphore {number} still holds {count} at the end of the step" for number, count in dict(left).items()]


def _place(kernel: Kernel, line: int) -> str:
    """The operation on a line of the kernel, with its phase."""
    phase = text = ""
    for first, op in kernel.operations:
        if first > line:
            break
        if isinstance(op, Phase):
            phase = op.name
        if not isinstance(op, BLOCKS):
            text = print_op(op)
    return f"`{text}` of phase {phase}" if text else "an unknown operation"


def _describe(small: Shrunk) -> str:
    spec, plan = small.spec, small.schedule.plan
    rings = ", ".join(f"{ring.name} {ring.slots} slots" for ring in plan.rings)
    return (
        f"{spec.num_layers} layers, hidden {spec.hidden}, vocabulary {spec.vocab}, {small.shape.rows} rows, "
        f"context {small.shape.context} in tiles of {plan.kv_tokens}; {rings}"
    )

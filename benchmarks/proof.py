"""How long the static proof takes against the size of the program, in seconds and relative to the smallest of a table.

    python benchmarks/proof.py                  grow rows, layers and the text of one model, and programs by hand
    python benchmarks/proof.py models           every model, policy and number of rows
    python benchmarks/proof.py devices          grow layers and devices of a ring all-gather and of generated programs

Times are CPU seconds, the best of three; only the ratios within one run compare between machines. `executed` counts
what the symbolic machine ran, `skipped` the loop iterations that an induction covered, `grows by` the exponent of the
time in the operations executed since the line before: 1 is linear.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from math import log

from programs import ring_all_gather, straight

from schedc.ir.allocate import allocate
from schedc.ir.program import Program
from schedc.ir.verify import Limits, Verdict, verify
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.load import list_models, load_spec
from schedc.target.target import parse_target

MODEL = "smollm2-135m"
POLICIES = ("ring", "double_buffer", "just_in_time")
CONTEXT = 4096
Case = tuple[str, Callable[[], Program]]


def main(arguments: list[str]) -> None:
    if arguments == ["models"]:
        table(f"every model, context {CONTEXT}", models(), grows=False)
        return
    if arguments == ["devices"]:
        layers, devices = (10, 30, 100, 300, 1000), (2, 4, 8, 16, 32)
        table("all-gather on 8 devices: layers", ((f"{n} layers", partial(ring_all_gather, 8, n)) for n in layers))
        table("all-gather, 30 layers: devices", ((f"{n} devices", partial(ring_all_gather, n, 30)) for n in devices))
        table("generated, ring, 4 rows: devices", on_devices(), grows=False)
        return
    if arguments:
        raise SystemExit(__doc__)
    transfers = (300, 1000, 3000, 10_000, 30_000)
    table("no loops: transfers", ((f"{n} transfers", partial(straight, n)) for n in transfers))
    rows, layers, steps = (1, 2, 4, 8, 16), (30, 60, 120, 240, 480), (1, 2, 4, 8, 16)
    table(f"{MODEL}, ring: rows", ((f"{n} rows", partial(generate, MODEL, n, "ring")) for n in rows))
    table(f"{MODEL}, ring, 8 rows: layers", ((f"{n} layers", partial(generate, MODEL, 8, "ring", n)) for n in layers))
    table(f"{MODEL}, ring, 4 rows: steps in the text", ((f"{n} steps", partial(repeated, n)) for n in steps))


def models() -> Iterator[Case]:
    for model, policy, rows in product(list_models(), POLICIES, (1, 8, 16)):
        yield f"{model} {policy} {rows}", partial(generate, model, rows, policy)


def on_devices() -> Iterator[Case]:
    for model, layers, devices in (
        ("llama-3.1-8b", 61, 8),
        ("llama-3.1-8b", 93, 32),
        ("llama-3.1-70b", 80, 8),
        ("qwen3-235b-a22b", 94, 8),
        ("qwen3-235b-a22b", 94, 32),
    ):
        yield f"{model} {layers} layers {devices}", partial(generate, model, 4, "ring", layers, devices)


def generate(model: str, rows: int, policy: str, layers: int | None = None, devices: int = 1) -> Program:
    spec, target = load_spec(model), parse_target("tpu7x:2x2x4" if devices > 1 else "tpu7x")
    if layers is not None:
        (run,) = spec.layers
        spec = spec.model_copy(update={"layers": (run.model_copy(update={"repeat": layers}),)})
    program = schedule(spec, StepShape(rows, CONTEXT, devices=devices), target, policy).program
    return allocate(program, capacity_rows(target))


def repeated(steps: int) -> Program:
    """The same step `steps` times over in the text, so that no induction covers it."""
    program = generate(MODEL, 4, "ring")
    return replace(program, body=program.body * steps)


def table(title: str, cases: Iterable[Case], grows: bool = True) -> None:
    last = f"{'grows by':>10}" if grows else ""
    print(f"{title}\n{'':32}{'in text':>9}{'executed':>10}{'skipped':>9}{'seconds':>9}{'ratio':>8}{last}")
    first = before = None
    for name, build in cases:
        program = build()
        seconds, verdict = measure(program)
        executed = verdict.statistics.operations
        first = first or seconds
        steep = ""
        if grows and before is not None and executed > 1.05 * before[0]:
            steep = f"{log(seconds / before[1]) / log(executed / before[0]):.2f}"
        before = executed, seconds
        size = program.size
        skipped = verdict.statistics.skipped_iterations
        line = f"{name:32}{size:9}{executed:10}{skipped:9}{seconds:9.3f}{seconds / first:8.2f}{steep:>10}"
        print(line if verdict.proven else f"{line}  refused: {verdict.refusals[0]}", flush=True)
    print()


def measure(program: Program) -> tuple[float, Verdict]:
    """CPU seconds, the best of three, and the verdict."""
    capability = parse_target("tpu7x").capability
    limits = Limits(
        capability.vmem_usable_bytes,
        capability.smem_usable_bytes,
        capability.semaphores,
        capability.vmem_internal_bytes,
    )
    times = []
    for _ in range(3):
        start = time.process_time()
        verdict = verify(program, limits)
        times.append(time.process_time() - start)
    return min(times), verdict


if __name__ == "__main__":
    main(sys.argv[1:])

"""A page for every shipped model: its placement, a picture of its schedule, and numbers.

The target, the devices and the settings are those of the model's first case in `benchmarks/full_size/cases.yaml`; a
model that has none is taken as `schedc compile MODEL` takes it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import schedc
from benchmarks.full_size.cases import Case, load_cases
from schedc.compiler.pipeline import build
from schedc.compiler.placement import PlacementReport, placement_report
from schedc.cost.picture import draw
from schedc.cost.report import PhaseReport
from schedc.ir.program import ROW_BYTES
from schedc.spec.load import list_models

ROOT = Path(__file__).parents[2]
MIB = 2**20
TARGET = "tpu7x:2x2x4"
"""Of a model without a case."""
LAYERS_SHOWN = 3


def write_pages(docs: Path) -> None:
    folder = docs / "models"
    folder.mkdir(exist_ok=True)
    lines = ["# Shipped models\n", "Made by `python -m docs.generate --models`; times are predictions.\n"]
    lines += ["| model | layers | parameters | target | devices | predicted step |", "|---|---|---|---|---|---|"]
    for model in list_models():
        made = prediction(model)
        draw_layers(made, folder / f"{model}.png")
        (folder / f"{model}.md").write_text(page(model, made), encoding="utf-8")
        size = sum(made.spec.parameter_counts().values()) / 1e9
        lines.append(
            f"| [{model}]({model}.md) | {made.spec.num_layers} | {size:,.2f} B | {made.target.name} | "
            f"{made.target.devices_used} | {made.report.step_us:,.0f} µs |"
        )
        print(model, flush=True)
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def prediction(model: str) -> schedc.Prediction:
    request = _case(model).request() if _case(model) else schedc.predict(model, TARGET).request
    return schedc.Prediction(request, *build(request))


def _case(model: str) -> Case | None:
    return next((case for case in load_cases() if case.spec == model), None)


def draw_layers(made: schedc.Prediction, path: Path) -> None:
    """Some layers from the middle of the step."""
    timeline = made.timeline()
    layer = timeline.step_ns / 1e3 / (made.spec.num_layers + 1)
    start = layer * (made.spec.num_layers // 2)
    draw(timeline, path, start, start + LAYERS_SHOWN * layer, f"{made.spec.name}: {LAYERS_SHOWN} layers' time")


def page(model: str, made: schedc.Prediction) -> str:
    return "\n".join(_lines(model, made)) + "\n"


def _lines(model: str, made: schedc.Prediction) -> Iterator[str]:
    spec, report = made.spec, made.report
    size = sum(spec.parameter_counts().values()) / 1e6
    yield f"# {model}\n"
    yield f"{size:,.1f} M parameters, {spec.num_layers} layers, {spec.hidden} wide. {made.target.describe()}.\n"
    yield f"```sh\n{command(model)}\n```\n"
    yield f"Predicted step: **{report.step_us:,.1f} µs**, rows {report.active_rows}, position {report.position[0]}."
    yield f"HBM is busy {report.hbm_busy_fraction:.0%} of it; the core waits {report.stall_us:,.1f} µs.\n"
    yield "| lower bound | µs | the step takes |\n|---|---|---|"
    for name, bound in report.bounds.items():
        times = "" if bound.step_over_bound is None else f"{bound.step_over_bound:.2f} times that"
        yield f"| {name} | {bound.time_us:,.1f} | {times} |"
    yield f"\n![{LAYERS_SHOWN} layers of {model}]({model}.png)\n"
    yield "## Where the time goes\n"
    yield from _phases(report.phases)
    yield "\n## VMEM\n\n| pool | MiB |\n|---|---|"
    for pool in made.program.pools:
        yield f"| {pool.name} | {pool.rows * ROW_BYTES / MIB:,.2f} |"
    yield "\n## Placement\n"
    yield from _placement(
        placement_report(spec, made.request.shape, made.target, made.made.layouts, made.program.arrays)
    )
    yield from _compiled(model)


def command(model: str) -> str:
    """As on the command line; fields of the spec that the case changes, and rules of its placement, as comments."""
    case = _case(model)
    if case is None:
        return f"schedc compile {model} --target {TARGET}"
    words = [f"schedc compile {model} --target {case.target} --devices {case.devices}"]
    words += [f"--rows {case.rows} --context {case.context}"]
    words += [f"--set {name}={value:g}" for name, value in case.settings.items()]
    notes = [f"# in the spec: {json.dumps(case.changes)}"] if case.changes else []
    notes += [f"# --placement: {json.dumps(case.placement)}"] if case.placement else []
    return "\n".join((*notes, " ".join(words)))


def _phases(phases: Sequence[PhaseReport]) -> Iterator[str]:
    """Places of a pattern together: `up_1_0` and `up_1_1` are `up`."""
    sums: dict[str, list[float]] = {}
    for phase in phases:
        name = re.sub(r"(_\d+)+$", "", phase.name)
        amounts = (phase.executions, phase.bytes / MIB, phase.time_us, phase.stall_us, phase.hbm_idle_us)
        sums[name] = [a + b for a, b in zip(sums.get(name, [0.0] * 5), amounts, strict=True)]
    yield "| phase | times | MiB | µs | waiting | HBM idle |\n|---|---|---|---|---|---|"
    for name, (times, size, time, stall, idle) in sums.items():
        yield f"| {name} | {times:.0f} | {size:,.1f} | {time:,.1f} | {stall:,.1f} | {idle:,.1f} |"


def _placement(report: PlacementReport) -> Iterator[str]:
    yield "| family | by | a device has | copies | once MiB | device MiB |\n|---|---|---|---|---|---|"
    for family in report.families:
        sizes = f"{family.once / MIB:,.0f} | {family.device / MIB:,.0f}"
        if not family.held:
            yield f"| {family.family} | replicated | all | {report.devices} | {sizes} |"
        for statement in family.held:
            yield f"| {family.family} | {statement.rule} | {statement.what} | {statement.copies} | {sizes} |"
            sizes = " | "
    for statement in report.cache_statements:
        size = f"{sum(report.caches.values()) / MIB:,.0f}"
        yield f"| cache | {statement.rule} | {statement.what} | {statement.copies} | | {size} |"
    yield f"\n{report.total / MIB:,.0f} of {report.limit / MIB:,.0f} MiB a device.\n"


def _compiled(model: str) -> Iterator[str]:
    """What the TPU compiler made of it at full size, as `benchmarks/full_size` has measured."""
    with (ROOT / "benchmarks" / "full_size" / "table.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == model]
    if rows:
        yield "## Through the TPU compiler\n"
        yield "| target | rows | context | jax | VMEM MiB | code KB | issue cycles | seconds |"
        yield "|---|---|---|---|---|---|---|---|"
        for row in rows:
            vmem, code = int(row["vmem_bytes"]) / MIB, int(row["code_bytes"]) / 1000
            yield (
                f"| {row['target']} | {row['rows']} | {row['context']} | {row['jax']} | {vmem:,.1f} | {code:,.0f} | "
                f"{int(row['issue_cycles']):,} | {row['compile_seconds']} |"
            )

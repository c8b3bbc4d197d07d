"""What `schedc compile` shows a person."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from schedc.cli.console import grid, simple_table
from schedc.compiler.pipeline import Compiled
from schedc.cost.report import CostReport
from schedc.ir.live import live_ranges
from schedc.ir.program import ROW_BYTES, Buffer, Program
from schedc.ir.verify import Verdict
from schedc.schedule.products import products_of
from schedc.spec.storage import FAMILIES

if TYPE_CHECKING:
    from schedc.compiler.check import CheckReport

MIB = 2**20
_BAR = 24
_BOUNDS = {
    "hbm": "HBM bytes over bandwidth",
    "compute": "computation",
    "latency": "longest chain of waits in this order",
    "exchanges": "dependent exchanges",
    "dependence": "dependent computations and exchanges",
    "one_core": "the same, computed by one core",
}
_IDLE = {
    "latency": "transfers on their way",
    "address": "address not known yet",
    "data": "data not there yet",
    "slots": "slots full",
    "late": "started late",
    "end": "end of the step",
}


def show(
    console: Console,
    compiled: Compiled,
    checked: "CheckReport | None",
    profiled: CostReport | None,
    seconds: Mapping[str, float],
    folder: Path,
    files: Sequence[str],
) -> None:
    _show_request(console, compiled)
    console.print()
    console.print(phase_table(compiled.cost))
    console.print()
    console.print(vmem_line(compiled.program, compiled.request.target.capability.vmem_usable_bytes))
    console.print(buffer_table(compiled.program))
    console.print()
    console.print(_summary(compiled, checked, profiled, seconds))
    for note in compiled.cost.notes:
        console.print(Text(f"note: {note}", style="dim"))
    console.print()
    lines = compiled.kernel.source.count("\n")
    console.print(Text.assemble("wrote ", (str(folder), "bold"), f": {', '.join(files)} (the kernel: {lines} lines)"))


def _show_request(console: Console, compiled: Compiled) -> None:
    request, plan = compiled.request, compiled.schedule.plan
    spec, shape = request.spec, request.shape
    size = sum(spec.parameter_counts().values()) / 1e6
    console.print(
        Text.assemble((spec.name, "bold"), f": {size:,.1f} M parameters, {spec.num_layers} layers, {spec.hidden} wide")
    )
    console.print(request.target.describe())
    settings = "".join(f", {key} {value}" for key, value in (request.settings or {}).items())
    rings = ", ".join(f"{ring.name} {ring.slots} slots" for ring in plan.rings)
    own = [(family, getattr(spec.quantization, family)) for family in (*FAMILIES, "embedding")]
    exceptions = "".join(f", {family} {stored}" for family, stored in own if stored is not None)
    cached = "pages" if spec.kv.layout == "paged" else "tiles"
    console.print(
        f"rows {shape.rows}, context {shape.context}, weights {spec.quantization.weights}{exceptions}, "
        f"kv {spec.kv.dtype} in {cached} of {plan.kv_tokens} tokens; policy {request.policy}{settings} ({rings})"
    )
    products = [name for name in products_of(compiled.program) if not name.endswith("_direct")]
    if products:
        console.print(f"quantised weights are multiplied as {', '.join(products)}")
    if shape.devices > 1:
        talk = shape.communication
        console.print(f"devices sum what each has a part of by {talk.all_reduce}, {talk.wire} on the wire")


def phase_table(cost: CostReport) -> Table:
    """Every phase over all its executions; the bar is its share of the step, the light part of it waiting."""
    numbers = ("times", "transfers", "MiB", "µs", "waiting")
    table = simple_table("phase", *numbers, "", right=numbers)
    longest = max((phase.time_us for phase in cost.phases), default=0.0) or 1.0
    for phase in cost.phases:
        table.add_row(
            phase.name,
            f"{phase.executions}" if phase.executions else "",
            f"{phase.transfers}" if phase.transfers else "",
            f"{phase.bytes / MIB:,.2f}" if phase.bytes >= 0.005 * MIB else "",
            f"{phase.time_us:,.2f}",
            f"{phase.stall_us:,.2f}" if phase.stall_us >= 0.005 else "",
            _share(phase.time_us, phase.stall_us, longest),
        )
    return table


def _share(time: float, waiting: float, longest: float) -> Text:
    whole = round(_BAR * time / longest)
    light = min(whole, round(_BAR * waiting / longest))
    return Text.assemble(("█" * (whole - light), "cyan"), ("░" * light, "cyan"))


def vmem_line(program: Program, limit: int) -> Text:
    """`limit` is in bytes."""
    peak = sum(pool.rows for pool in program.pools) * ROW_BYTES
    filled = round(_BAR * peak / limit)
    bar = ("█" * filled, "green"), ("·" * (_BAR - filled), "dim")
    used = f"{peak / MIB:.2f}" if peak >= 0.1 * MIB else size(peak)
    return Text.assemble(("VMEM ", "bold"), f"{used} of {size(limit)} ", *bar, f" {100 * peak / limit:.0f} %")


def buffer_table(program: Program) -> Table:
    """Every buffer by pool and address. The bar is its place in the pool, `live` its operations in program order."""
    columns = ("pool", "address", "buffer", "slots", "rows", "KiB", "live", "")
    table = simple_table(*columns, right=("address", "slots", "rows", "KiB"))
    ranges = {live.buffer: f"{live.first} … {live.last}" for live in live_ranges(program)}
    for pool in program.pools:
        inside = sorted((b for b in program.buffers if b.pool == pool.name), key=lambda b: (b.address or 0, b.name))
        for number, buffer in enumerate(inside):
            table.add_row(
                f"{pool.name} {size(pool.rows * ROW_BYTES)}" if number == 0 else "",
                f"{buffer.address}",
                buffer.name,
                f"{buffer.slots}",
                f"{buffer.rows}",
                f"{buffer.slots * buffer.rows * ROW_BYTES / 1024:,.0f}",
                ranges.get(buffer.name, "never"),
                _place(buffer, pool.rows),
            )
    return table


def _place(buffer: Buffer, rows: int) -> Text:
    """Where in its pool a buffer lies; at least one cell."""
    address = buffer.address or 0
    first = min(_BAR - 1, _BAR * address // rows)
    last = max(first + 1, -(-_BAR * (address + buffer.slots * buffer.rows) // rows))
    return Text.assemble(("·" * first, "dim"), ("█" * (last - first), "green"), ("·" * (_BAR - last), "dim"))


def _summary(
    compiled: Compiled, checked: "CheckReport | None", profiled: CostReport | None, seconds: Mapping[str, float]
) -> Table:
    compiler = [("TPU compiler", "not asked (--no-check)")] if checked is None else checked.lines()
    times = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    costs = cost_lines(compiled.cost) if profiled is None else [step_line(compiled.cost), *cost_lines(profiled)]
    return grid([proof_line(compiled.verdict), *compiler, *costs, ("seconds", times)])


def proof_line(verdict: Verdict) -> tuple[str, str]:
    statistics = verdict.statistics
    return (
        "proof",
        f"proven safe: {statistics.operations:,} operations, {statistics.transfers:,} transfers, at most "
        f"{statistics.peak_transfers} in flight ({size(statistics.peak_rows * ROW_BYTES)}), "
        f"{statistics.skipped_iterations:,} iterations by induction",
    )


def size(count: int) -> str:
    """Bytes, in the unit that fits."""
    return f"{count / MIB:.2f} MiB" if count >= 0.1 * MIB else f"{count / 1024:.1f} KiB"


def step_line(cost: CostReport) -> tuple[str, str]:
    """(label, value): the predicted step alone."""
    position = f" at position {cost.position[0]}" if cost.position else ""
    return (
        "predicted step",
        f"{cost.step_us:,.1f} µs{position}, {cost.clock_mhz:,.0f} MHz (a call adds {cost.dispatch_us:,.0f} µs), "
        f"priced by {cost.priced_by}; HBM is busy {100 * cost.hbm_busy_fraction:.0f} % of it, the core waits "
        f"{cost.stall_us:,.1f} µs",
    )


def cost_lines(cost: CostReport) -> list[tuple[str, str]]:
    """(label, value): the predicted step and how far it is from its lower bounds."""
    lines = [step_line(cost)]
    for name, bound in cost.bounds.items():
        if name == "exchanges" and not bound.time_us:  # one device has none
            continue
        times = "" if bound.step_over_bound is None else f"; the step takes {bound.step_over_bound:.2f} times that"
        part = "" if bound.largest_share is None else f" ({bound.largest} {100 * bound.largest_share:.0f} % of it)"
        lines.append(
            (
                "lower bound" if name == next(iter(cost.bounds)) else "",
                f"{bound.time_us:,.1f} µs {_BOUNDS[name]}{part}{times}",
            )
        )
    if cost.idle_causes:
        causes = sorted(cost.idle_causes.items(), key=lambda item: -item[1])
        lines.append(
            ("HBM idle", f"{cost.hbm_idle_us:,.1f} µs: " + ", ".join(f"{_IDLE[c]} {time:,.1f}" for c, time in causes))
        )
    if cost.load.expected:
        most = max(cost.load.expected.values())
        lines.append(("experts", f"{most:g} a layer on the {cost.load.experts} device, {cost.load.routing} routing"))
    path = cost.critical_path
    if path is not None:
        lines.append(("critical path", ", ".join(f"{cause} {time:,.1f} µs" for cause, time in path.causes.items())))
    if path is not None and path.period is not None:
        lines.append(("", f"{path.period} takes {path.period_us:,.1f} µs: {path.text}"))
    return lines

"""How a schedule shows itself in a notebook: what it is, its time against its bounds, a map of its VMEM."""

from __future__ import annotations

from html import escape

from schedc.compiler.pipeline import Request
from schedc.cost.report import CostReport
from schedc.ir.live import live_ranges
from schedc.ir.program import ROW_BYTES, Program

WIDTH, HEIGHT = 640, 260
"""Of the map, in pixels."""

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#bab0ac")
"""One a pool, in turn."""


def card(request: Request, program: Program, report: CostReport) -> str:
    """HTML without scripts: figures, then the map."""
    bounds = ", ".join(f"{name} {bound.time_us:,.1f} µs" for name, bound in report.bounds.items() if bound.time_us)
    rows = {
        "model": f"{request.spec.name} on {request.target.describe()}",
        "step": f"{report.step_us:,.1f} µs predicted, rows {request.shape.rows}, policy {request.policy}",
        "lower bounds": bounds,
        "HBM": f"busy {report.hbm_busy_fraction:.0%}; the core waits {report.stall_us:,.1f} µs",
        "VMEM": f"{_bytes(program) / 2**20:,.2f} of {request.target.capability.vmem_usable_bytes / 2**20:,.2f} MiB",
    }
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f"<table>{cells}</table>{vmem_map(program)}"


def vmem_map(program: Program) -> str:
    """SVG: a rectangle a buffer, its address from the top, the operations of the program from the left."""
    length = max(1, program.size)
    total = max(1, sum(pool.rows for pool in program.pools))
    bases, base = {}, 0
    for pool in program.pools:
        bases[pool.name] = base
        base += pool.rows
    colours = {pool.name: COLOURS[number % len(COLOURS)] for number, pool in enumerate(program.pools)}
    live = {found.buffer: found for found in live_ranges(program)}
    shapes = []
    for buffer in program.buffers:
        if buffer.name not in live or buffer.address is None:
            continue
        rows = buffer.rows * buffer.slots
        top, height = HEIGHT * (bases[buffer.pool] + buffer.address) / total, HEIGHT * rows / total
        title = f"{buffer.name}: {rows * ROW_BYTES / 1024:,.0f} KiB in {buffer.pool}"
        for first, last in live[buffer.name].spans:
            left, right = WIDTH * first / length, WIDTH * (last + 1) / length
            shapes.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{max(height, 0.5):.1f}" '
                f'fill="{colours[buffer.pool]}" fill-opacity="0.7" stroke="white" stroke-width="0.3">'
                f"<title>{escape(title)}</title></rect>"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="VMEM: address by operation"><rect width="{WIDTH}" height="{HEIGHT}" fill="none" '
        f'stroke="gray"/>{"".join(shapes)}</svg>'
    )


def _bytes(program: Program) -> int:
    return sum(pool.rows for pool in program.pools) * ROW_BYTES

"""The map of VMEM as SVG or PNG: addresses up, time to the right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schedc.cost.picture import save
from schedc.errors import UserError
from schedc.inspect.vmem_map import Rect, VmemMap
from schedc.ir.program import ROW_BYTES

MIB = 2**20
FORMATS = (".svg", ".png", ".pdf")
LIVE, RESERVED, ARRIVING, HELD, CLASH = "#7fa6d6", "#e3e7ee", "#f2b872", "#4f7fbf", "#f3b3ae"
LIMIT = "#c22f27"


def draw_vmem(vmem: VmemMap, path: Path, title: str, start_us: float = 0.0, end_us: float | None = None) -> None:
    """From `start_us` to `end_us`. Raises UserError without matplotlib, or for a suffix it does not write."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import PatchCollection
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch, Rectangle
    except ImportError:
        raise UserError("a picture needs matplotlib: pip install 'schedc[plot]'") from None
    if path.suffix not in FORMATS:
        raise UserError(f"{path}: a map of VMEM is written as {', '.join(FORMATS)}")
    end = vmem.step_ns / 1e3 if end_us is None else end_us
    if not start_us < end:
        raise UserError(f"the picture would go from {start_us:g} to {end:g} µs; --to must be more than --from")
    figure = Figure(figsize=(14, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    filled = {rect.buffer for rect in vmem.rects if rect.kind == "arriving"}
    colours = {"arriving": ARRIVING, "held": HELD}
    for layer in (0, 1):
        shown = [r for r in vmem.rects if (r.kind != "live") == bool(layer) and _meets(r, start_us, end)]
        patches = [Rectangle((r.began / 1e3, _mib(r.row)), (r.ended - r.began) / 1e3, _mib(r.rows)) for r in shown]
        faces = [
            CLASH
            if r.buffer in vmem.clash and layer == 0
            else colours.get(r.kind, RESERVED if r.buffer in filled else LIVE)
            for r in shown
        ]
        style: dict[str, Any] = {"facecolor": faces, "edgecolor": "white", "linewidth": 0.25}
        axes.add_collection(PatchCollection(patches, **style))
    limit, top = _mib(vmem.limit_rows), _mib(vmem.limit_rows - vmem.compiler_rows)
    high = max(limit, _mib(vmem.rows)) * 1.06
    _pools(axes, vmem, high)
    axes.axhline(limit, color=LIMIT, linewidth=1.2, zorder=4)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.0}
    place: dict[str, Any] = {"fontsize": 8, "ha": "right", "va": "bottom", "color": LIMIT, "zorder": 5, "bbox": box}
    axes.annotate(f"limit {limit:.2f} MiB", (end, limit), (-3, 3), textcoords="offset points", **place)
    if vmem.compiler_rows:
        axes.axhspan(top, limit, facecolor="none", edgecolor="0.5", hatch="////", linewidth=0)
        kinds = ", ".join(f"{kind} {size / MIB:.2f}" for kind, size in vmem.compiler)
        axes.text(start_us, (top + limit) / 2, f" the TPU compiler's: {kinds} MiB", fontsize=8, va="center")
    _names(axes, vmem, start_us, end)
    if start_us <= vmem.peak_ns / 1e3 <= end:
        axes.axvline(vmem.peak_ns / 1e3, color="0.2", linewidth=0.8, linestyle=":")
    peak = f"peak {_mib(vmem.peak_rows):.2f} MiB live at {vmem.peak_ns / 1e3:,.1f} µs"
    slack = _mib(vmem.slack_rows)
    room = f"slack {slack:.2f} MiB" if slack >= 0 else f"{-slack:.2f} MiB too many"
    axes.set(xlim=(start_us, end), ylim=(0, high), xlabel="µs", ylabel="MiB", title=f"{title}\n{peak}, {room}")
    handles = [Patch(facecolor=LIVE, label="live"), Patch(facecolor=RESERVED, label="slots of a ring")]
    handles += [Patch(facecolor=ARRIVING, label="on its way"), Patch(facecolor=HELD, label="there, to be read")]
    if vmem.clash:
        handles.append(Patch(facecolor=CLASH, label="cannot be there together"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=5, fontsize=8, frameon=False)
    try:
        save(figure, path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def _names(axes: Any, vmem: VmemMap, start_us: float, end: float) -> None:
    """Of the buffers that are high enough to be written on, at their first rectangle that is long enough."""
    high = max(vmem.limit_rows, vmem.rows)
    named: set[str] = set()
    for rect in vmem.rects:
        if rect.kind != "live" or rect.buffer in named or rect.rows < high / 45:
            continue
        began, ended = max(rect.began / 1e3, start_us), min(rect.ended / 1e3, end)
        if ended - began > (end - start_us) * 0.008 * (len(rect.buffer) + 4):
            named.add(rect.buffer)
            at = (began + ended) / 2, _mib(rect.row + rect.rows / 2)
            box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.0}
            axes.text(*at, rect.buffer, fontsize=7, ha="center", va="center", color="0.1", bbox=box)


def _pools(axes: Any, vmem: VmemMap, high: float) -> None:
    """Lines between the pools, and their names beside the picture, not nearer to each other than they are high."""
    last = -high
    for name, first, rows in vmem.pools:
        axes.axhline(_mib(first), color="0.4", linewidth=0.6, zorder=3)
        at = max(_mib(first + rows / 2), last + high / 34)
        last = at
        axes.annotate(name, (1.0, at / high), (4, 0), xycoords="axes fraction", textcoords="offset points",
                      fontsize=8, va="center", color="0.2", annotation_clip=False)  # fmt: skip


def _meets(rect: Rect, start_us: float, end: float) -> bool:
    return rect.ended / 1e3 > start_us and rect.began / 1e3 < end


def _mib(rows: float) -> float:
    return rows * ROW_BYTES / MIB

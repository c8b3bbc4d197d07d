"""A picture of a predicted step: what the core does, where it waits, and which transfers have the HBM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schedc.cost.timeline import Event, Timeline
from schedc.errors import UserError

LANES = {"core": 3.0, "stall": 2.2, "hbm": 0.0, "link": -0.8}
"""Height of each lane's lower edge; transfers share the HBM, so they are stacked in their lane."""

HBM_ROWS = 8


def draw(timeline: Timeline, path: Path, start_us: float, end_us: float, title: str) -> None:
    """Write the part of the step from `start_us` to `end_us` as a PNG, SVG or PDF, by the suffix of `path`.

    Raises UserError if matplotlib is not installed or the suffix is not one it writes.
    """
    try:
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("a picture needs matplotlib: pip install 'schedc[plot]'") from None
    if not start_us < end_us:
        raise UserError(f"the picture would go from {start_us:g} to {end_us:g} µs; --to must be more than --from")
    shown = (event for event in timeline.events if event.lane in LANES)
    events = [e for e in shown if e.ended_ns > start_us * 1e3 and e.began_ns < end_us * 1e3]
    names = list(dict.fromkeys(event.phase for event in events))
    colours = {name: colormaps["tab20"](index % 20) for index, name in enumerate(names)}
    figure = Figure(figsize=(14, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    row_ends = [0.0] * HBM_ROWS
    for event in sorted(events, key=lambda e: e.began_ns):
        low, height = _place(event, row_ends)
        begin, length = event.began_ns / 1e3, (event.ended_ns - event.began_ns) / 1e3
        style: dict[str, Any] = {"facecolor": colours[event.phase], "edgecolor": "white", "linewidth": 0.3}
        if event.lane == "stall":
            style = {"facecolor": "none", "edgecolor": "0.5", "linewidth": 0.3, "hatch": "////"}
        axes.broken_barh([(begin, length)], (low, height), **style)
    talks = any(event.lane == "link" for event in timeline.events)
    axes.set(xlim=(start_us, end_us), ylim=(-0.9 if talks else -0.1, 3.9), xlabel="µs", title=title)
    lanes = {"core computes": 3.35, "core waits": 2.45, "HBM transfers": 0.95} | ({"links": -0.55} if talks else {})
    axes.set_yticks(list(lanes.values()), list(lanes))
    handles = [axes.barh(0, 0, color=colours[name], label=name) for name in names if name]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=9, fontsize=8, frameon=False)
    try:
        save(figure, path)
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: {error}") from None


def save(figure: Any, path: Path) -> None:
    """Without the date, and with the same names in it every time: the same picture is the same bytes."""
    from matplotlib import rc_context

    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "schedc"}):
        figure.savefig(path, dpi=110, metadata=undated.get(path.suffix))


def _place(event: Event, row_ends: list[float]) -> tuple[float, float]:
    """(lower edge, height): transfers go into the first row that is free."""
    if event.lane != "hbm":
        return LANES[event.lane], 0.7 if event.lane == "core" else 0.5
    row = next((i for i, end in enumerate(row_ends) if end <= event.began_ns), len(row_ends) - 1)
    row_ends[row] = event.ended_ns
    height = 2.0 / len(row_ends)
    return row * height, height * 0.9

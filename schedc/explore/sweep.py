"""The time of a plan against one number at a time: the slots of its rings, how far ahead tiles start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from schedc.errors import UserError
from schedc.explore.search.improve import slot_rows
from schedc.explore.setting import Prepared
from schedc.schedule.plan import Plan

SLOTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
MOST_RINGS = 4
"""That are drawn: those with the largest slots."""


@dataclass(frozen=True)
class Line:
    """`points`: (value, µs); what does not fit or waits for ever is left out."""

    panel: str
    name: str
    chosen: int
    points: tuple[tuple[int, float], ...]


def lines(ready: Prepared, plan: Plan) -> list[Line]:
    """For the largest rings: slots with as many ahead, and tiles ahead in the slots there are."""
    rings = sorted(plan.rings, key=lambda ring: -slot_rows(ready, plan, ring))[:MOST_RINGS]
    found = []
    for ring in rings:

        def time(slots: int, ahead: int, name: str = ring.name) -> float:
            changed = tuple(replace(r, slots=slots, ahead=ahead) if r.name == name else r for r in plan.rings)
            return ready.step_ns(replace(plan, rings=changed)) / 1e3

        mib = slot_rows(ready, plan, ring) / 2048
        label = f"{ring.name}, {mib:.2g} MiB a slot"
        sizes = sorted({*SLOTS, ring.slots})
        full = ring.ahead == ring.slots
        depth = [(n, time(n, n if full else min(ring.ahead, n))) for n in sizes]
        ahead = [(n, time(ring.slots, n)) for n in range(ring.slots + 1)]
        found.append(Line("slots of a ring", label, ring.slots, _finite(depth)))
        found.append(Line("prefetch distance in tiles", label, ring.ahead, _finite(ahead)))
    return found


def _finite(points: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    return tuple((n, round(us, 3)) for n, us in points if us < inf)


def draw(found: list[Line], title: str, path: Path) -> None:
    """Raises UserError without matplotlib, or for a suffix that is no picture."""
    from schedc.cost.picture import save

    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--plot needs the package matplotlib: pip install 'schedc[plot]'") from None
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = list(dict.fromkeys(line.panel for line in found))
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for line in (line for line in found if line.panel == panel and line.points):
            xs, ys = zip(*line.points, strict=True)
            (drawn,) = axes.plot(xs, ys, marker="o", markersize=3, label=line.name)
            axes.plot(*zip(*[p for p in line.points if p[0] == line.chosen], strict=True), marker="D",
                      color=drawn.get_color()) if line.chosen in xs else None  # fmt: skip
        axes.set_xlabel(panel)
        axes.set_ylabel("step, µs")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    try:
        save(figure, path)
    except (ValueError, OSError) as error:
        raise UserError(f"--plot {path}: {error}") from None

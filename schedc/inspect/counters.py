"""Counters over time: bytes in VMEM, bytes in flight, bandwidth of the HBM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from schedc.inspect.history import History
from schedc.inspect.vmem_map import VmemMap
from schedc.ir.program import ROW_BYTES


@dataclass(frozen=True)
class Counter:
    """`points` are (whole ns, value): the value from then on."""

    name: str
    unit: str
    points: tuple[tuple[int, float], ...]


def counters_of(history: History, vmem: VmemMap) -> tuple[Counter, ...]:
    hbm = [t for t in history.transfers if t.lane == "hbm"]
    return (
        Counter("VMEM in use", "bytes", _steps(_in_use(vmem))),
        Counter("bytes in flight", "bytes", _steps((t.issued, t.ended, t.bytes) for t in hbm)),
        Counter("HBM bandwidth", "GB/s", _steps((t.began, t.ended, t.bytes / (t.ended - t.began)) for t in hbm)),
    )


def _in_use(vmem: VmemMap) -> Iterable[tuple[float, float, float]]:
    """Of a buffer that transfers fill, what is on its way or still to be read; of others, all while they are live."""
    filled = {rect.buffer for rect in vmem.rects if rect.kind == "arriving"}
    for rect in vmem.rects:
        if (rect.kind == "live") != (rect.buffer in filled):
            yield rect.began, rect.ended, float(rect.rows * ROW_BYTES)


def _steps(spans: Iterable[tuple[float, float, float]]) -> tuple[tuple[int, float], ...]:
    """The sum over (began, ended, amount), wherever it changes; of a rate, each transfer's mean."""
    changes: dict[int, float] = defaultdict(float)
    count: dict[int, int] = defaultdict(int)
    for began, ended, amount in spans:
        first, last = round(began), round(ended)
        if first < last:
            changes[first] += amount
            changes[last] -= amount
            count[first] += 1
            count[last] -= 1
    points, value, open_ = [(0, 0.0)], 0.0, 0
    for time in sorted(changes):
        open_ += count[time]
        value = value + changes[time] if open_ else 0.0  # no rests of rounding where there is nothing
        if points[-1][0] == time:
            points[-1] = (time, value)
        elif abs(points[-1][1] - value) > 1e-9:
            points.append((time, value))
    return tuple(points)

"""What the page draws, as JSON: columns of whole numbers, times in ns, each sorted column as differences.

The page's `data.js` is the other end. `decode` is what it does, for tests.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from schedc.inspect.counters import counters_of
from schedc.inspect.history import History, Transfer
from schedc.inspect.path import CAUSES, idle_times, path_of
from schedc.inspect.runs import Run, runs_of
from schedc.inspect.seen import Seen
from schedc.inspect.tracks import kind_of, name_of
from schedc.inspect.vmem_map import Rect, VmemMap
from schedc.ir.program import ROW_BYTES, RemoteStart, Start

_PLACE = re.compile(r"_\d+_\d+$")
_CAUSES = list(CAUSES)
_PATH = ("core", "hbm", "link")


def schedule_data(seen: Seen) -> dict[str, Any]:
    history, sources = seen.history, seen.sources
    runs = runs_of(history)
    run_of = {step: number for number, run in enumerate(runs) for step in range(run.first, run.last + 1)}
    phases = list(dict.fromkeys(span.name for span in history.phases))
    hbm = [(index, t) for index, t in enumerate(history.transfers) if t.lane == "hbm"]
    links = [(index, t) for index, t in enumerate(history.transfers) if t.lane == "link"]
    idle = idle_times(history)
    number_of = {index: number for number, (index, _) in enumerate(hbm)}
    return {
        "title": history.title,
        "facts": _facts(seen),
        "step": round(history.timeline.step_ns),
        "ops": {
            "name": [name_of(op) for op in history.ops],
            "kind": [kind_of(op) for op in history.ops],
            "phase": [phases.index(name) if name in phases else -1 for name in history.phase_of],
            "bytes": [op.source.rows * ROW_BYTES if isinstance(op, (Start, RemoteStart)) else 0 for op in history.ops],
            "ir": list(sources.ir_lines),
            "kernel": [line or 0 for line in sources.kernel_lines],
        },
        "ir": sources.ir,
        "kernel": sources.kernel,
        "irName": sources.ir_name,
        "noKernel": sources.no_kernel,
        "phases": {"names": phases, "families": [_PLACE.sub("", name) for name in phases]}
        | _spans([(span.began, span.ended) for span in history.phases])
        | {"name": [phases.index(span.name) for span in history.phases]},
        "layers": _spans([(span.began, span.ended) for span in history.layers]),
        "core": _core(history, runs),
        "hbm": _transfers([t for _, t in hbm], run_of) | {"lane": _lanes([t for _, t in hbm])},
        "links": _transfers([t for _, t in links], run_of)
        | {"lane": [t.route for _, t in links], "left": [round(t.left) - round(t.began) for _, t in links]},
        "idle": _spans([(one.began, one.ended) for one in idle])
        | {"cause": [_CAUSES.index(one.cause) for one in idle], "causes": list(CAUSES.values())},
        "path": _path(history, number_of),
        "counters": [
            {
                "name": counter.name,
                "unit": counter.unit,
                "time": differences([time for time, _ in counter.points]),
                "value": [round(value) for _, value in counter.points],
            }
            for counter in counters_of(history, seen.vmem)
        ],
        "vmem": _vmem(seen.vmem, number_of),
    }


def differences(values: Sequence[int]) -> list[int]:
    return [value - before for before, value in zip([0, *values], values, strict=False)]


def decode(column: Iterable[int]) -> list[int]:
    return list(accumulate(column))


def _facts(seen: Seen) -> list[tuple[str, str]]:
    """(label, value) for the head of the page."""
    timeline, vmem = seen.history.timeline, seen.vmem
    peak, limit = vmem.peak_rows * ROW_BYTES, vmem.limit_rows * ROW_BYTES
    live = f"{peak / 2**20:.1f}" if peak >= 2**20 / 10 else f"{peak / 2**10:.1f} KiB"
    facts = [
        ("step", f"{timeline.step_ns / 1e3:,.1f} µs"),
        ("HBM busy", f"{100 * timeline.hbm_busy_fraction:.0f} %"),
        ("core waits", f"{timeline.stall_ns / 1e3:,.1f} µs"),
        ("VMEM peak", f"{live} of {limit / 2**20:.1f} MiB"),
        ("HBM traffic", f"{timeline.hbm_bytes / 1e6:,.0f} MB"),
    ]
    if timeline.priced_by:
        facts.append(("cycles", timeline.priced_by))
    target = dict(seen.history.program.attributes).get("target")
    devices = seen.history.program.devices
    return [*facts, ("target", f"{target}, {devices} device{'s' if devices > 1 else ''}")] if target else facts


def _spans(spans: Sequence[tuple[float, float]]) -> dict[str, list[int]]:
    """In order of their begin."""
    began = [round(first) for first, _ in spans]
    return {
        "began": differences(began),
        "length": [round(end) - first for first, (_, end) in zip(began, spans, strict=True)],
    }


def _core(history: History, runs: Sequence[Run]) -> dict[str, list[int]]:
    blocked = {wait.step: round(wait.ended) - round(wait.reached) for wait in history.waits if wait.blocked}
    return _spans([(run.began, run.ended) for run in runs]) | {
        "op": [run.op for run in runs],
        "count": [run.count for run in runs],
        "blocked": [blocked.get(run.first, 0) for run in runs],
    }


def _transfers(transfers: Sequence[Transfer], run_of: dict[int, int]) -> dict[str, list[int]]:
    """In order of their starts. `start`, `wait`, `use`, `last` are slices of the core; -1: none."""

    def runs(steps: Iterable[int | None]) -> list[int]:
        return [-1 if step is None else run_of[step] for step in steps]

    start = runs(t.step for t in transfers)
    return {
        "op": [t.op for t in transfers],
        "issued": differences([round(t.issued) for t in transfers]),
        "began": [round(t.began) - round(t.issued) for t in transfers],
        "ended": [round(t.ended) - round(t.began) for t in transfers],
        "row": [t.target.row for t in transfers],
        "start": differences(start),
        "wait": _after(runs(t.wait for t in transfers), start),
        "use": _after(runs(t.first_use for t in transfers), start),
        "last": _after(runs(t.last_use for t in transfers), start),
    }


def _after(runs: Sequence[int], start: Sequence[int]) -> list[int]:
    """How much later than the start, -1 for none: small numbers pack well."""
    return [-1 if run < 0 else run - first for run, first in zip(runs, start, strict=True)]


def _lanes(transfers: Sequence[Transfer]) -> list[int]:
    """A row for each, so that what is on its way at the same time is not in the same one."""
    ends: list[float] = []
    lanes = []
    for t in transfers:
        lane = next((n for n, end in enumerate(ends) if end <= t.issued), len(ends))
        ends[lane : lane + 1] = [t.ended]
        lanes.append(lane)
    return lanes


def _path(history: History, number_of: dict[int, int]) -> dict[str, list[Any]]:
    """`transfer` is the number of one of the HBM's, -1 for messages and the core's own work."""
    path = path_of(history)
    what = [part.what if part.kind == "core" else f"{part.what}: {part.cause}" for part in path]
    words = list(dict.fromkeys(what))
    place = {text: number for number, text in enumerate(words)}
    return _spans([(part.began, part.ended) for part in path]) | {
        "kind": [_PATH.index(part.kind) for part in path],
        "words": words,
        "what": [place[text] for text in what],
        "op": [-1 if part.transfer is None else history.transfers[part.transfer].op for part in path],
        "transfer": [-1 if part.transfer is None else number_of.get(part.transfer, -1) for part in path],
    }


def _vmem(vmem: VmemMap, number_of: dict[int, int]) -> dict[str, Any]:
    """Rectangles by buffer: those of its life, and those of what lies in it, each in order of time."""
    live: dict[str, list[Rect]] = defaultdict(list)
    filled: dict[str, list[Rect]] = defaultdict(list)
    for rect in vmem.rects:
        (live if rect.kind == "live" else filled)[rect.buffer].append(rect)
    buffers = []
    for buffer, row in vmem.buffers:
        inside = sorted(filled[buffer.name], key=lambda rect: (rect.began, rect.row))
        buffers.append(
            {
                "name": buffer.name,
                "row": row,
                "rows": buffer.rows,
                "slots": buffer.slots,
                "live": _spans([(rect.began, rect.ended) for rect in live[buffer.name]]),
                "held": _spans([(rect.began, rect.ended) for rect in inside])
                | {
                    "row": [rect.row - row for rect in inside],
                    "rows": [rect.rows for rect in inside],
                    "arrives": [int(rect.kind == "arriving") for rect in inside],
                    "transfer": differences(
                        [-1 if rect.transfer is None else number_of[rect.transfer] for rect in inside]
                    ),
                },
            }
        )
    return {
        "pools": vmem.pools,
        "buffers": buffers,
        "limit": vmem.limit_rows,
        "rows": vmem.rows,
        "compiler": vmem.compiler,
        "compilerRows": vmem.compiler_rows,
        "peak": [round(vmem.peak_ns), vmem.peak_rows],
        "slack": vmem.slack_rows,
        "clash": vmem.clash,
    }

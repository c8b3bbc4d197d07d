"""Chrome's trace event format, JSON, which Perfetto and chrome://tracing open. Times there are µs, ours whole ns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from schedc.inspect.tracks import Tracks


def chrome_trace(tracks: Tracks) -> dict[str, Any]:
    """A process a group, a thread a track, complete events (`X`), flows (`s`, `t`, `f`), counters (`C`)."""
    groups = {group: number + 1 for number, group in enumerate(dict.fromkeys(group for group, _ in tracks.names))}
    events: list[dict[str, Any]] = []
    for group, number in groups.items():
        events.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": group}})
        events.append({"ph": "M", "name": "process_sort_index", "pid": number, "args": {"sort_index": number}})
    place = []
    for number, (group, name) in enumerate(tracks.names):
        pid, tid = groups[group], number + 1
        place.append((pid, tid))
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        events.append({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}})
    for slice_ in tracks.slices:
        pid, tid = place[slice_.track]
        events.append(
            {
                "ph": "X",
                "name": slice_.name,
                "cat": slice_.kind,
                "pid": pid,
                "tid": tid,
                "ts": slice_.began / 1e3,
                "dur": (slice_.ended - slice_.began) / 1e3,
                "args": dict(slice_.facts),
            }
        )
    for number, flow in enumerate(tracks.flows):
        for at, index in enumerate(flow):
            slice_ = tracks.slices[index]
            pid, tid = place[slice_.track]
            event = {"ph": "t", "name": "transfer", "cat": "flow", "id": number + 1, "pid": pid, "tid": tid}
            event["ts"] = slice_.began / 1e3
            if at == 0:
                event["ph"] = "s"
            elif at == len(flow) - 1:
                event |= {"ph": "f", "bp": "e"}
            events.append(event)
    for counter in tracks.counters:
        for time, value in counter.points:
            name = f"{counter.name} ({counter.unit})"
            events.append(
                {"ph": "C", "name": name, "pid": 0, "ts": time / 1e3, "args": {counter.unit: round(value, 3)}}
            )
    events.append({"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "counters"}})
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"title": tracks.title}}


def write_chrome_trace(tracks: Tracks, path: Path) -> None:
    """As JSON, packed if the name ends in `.gz`; the same tracks give the same bytes."""
    text = json.dumps(chrome_trace(tracks), separators=(",", ":"), ensure_ascii=False).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)

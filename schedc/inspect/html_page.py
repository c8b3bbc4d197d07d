"""The timeline as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schedc.inspect.page_data import schedule_data
from schedc.inspect.seen import Seen

PARTS = Path(__file__).with_name("page")
SCRIPTS = (
    "data.js",
    "colours.js",
    "axis.js",
    "slices.js",
    "lanes.js",
    "vmem.js",
    "details.js",
    "differences.js",
    "main.js",
)
"""In the order in which they are put together."""


def page(
    shown: Sequence[Seen], start_us: float = 0.0, end_us: float | None = None, differs: dict[str, Any] | None = None
) -> str:
    """One schedule, or two below each other on the same axis of time, with `start_us` to `end_us` in view at first.

    `differs`: of two, what `diff_data` says of them.
    """
    data = {
        "schedules": [schedule_data(one) for one in shown],
        "differs": differs,
        "view": [round(start_us * 1e3), None if end_us is None else round(end_us * 1e3)],
    }
    packed = gzip.compress(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(), mtime=0)
    title = " against ".join(one.history.title for one in shown)
    parts = {
        "title": html.escape(f"schedc: {title}"),
        "style": _part("page.css"),
        "script": "\n".join(_part(name) for name in SCRIPTS),
        "data": base64.b64encode(packed).decode(),
    }
    text = _part("page.html")
    for name, part in parts.items():
        text = text.replace(f"<!--{name}-->", part)
    return text


@cache
def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")

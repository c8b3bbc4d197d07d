"""How large pages and traces are, and how long a page takes to open in headless Chromium.

    python -m benchmarks.page                        Kimi K3 on 32 devices, and SmolLM2-135M
    python -m benchmarks.page --picture FILE.png     100 µs of Kimi K3's page at 1280×800, as in the README

Needs Playwright and a chromium (`bash .ci/browser`). Seconds to open are from asking for the file until the second
picture is drawn, the best and the worst of five, in a browser that is running.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from schedc.cli.options import ScheduleOptions
from schedc.inspect.chrome_trace import write_chrome_trace
from schedc.inspect.html_page import page
from schedc.inspect.path import path_of
from schedc.inspect.perfetto_trace import write_perfetto_trace
from schedc.inspect.seen import Seen, seen
from schedc.inspect.subject import of_request
from schedc.inspect.tracks import tracks_of
from schedc.spec.load import load_spec
from tests.inspect.browser import opened, started

K3 = ScheduleOptions(target="tpu7x:2x2x4", context=2048, settings=["slot_mib=4"])
CASES = {"kimi-k3": K3, "smollm2-135m": ScheduleOptions()}
PICTURE_US = (1000.0, 1100.0)
MIB = 2**20


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--picture"]:
        picture(Path(arguments[1]))
        return
    row("model", "events", "page MiB", "opens s", "json.gz MiB", "pftrace MiB", "made in s")
    with tempfile.TemporaryDirectory() as name, started() as browser:
        for model, options in CASES.items():
            began = time.perf_counter()
            found = look_at(model, options)
            path = Path(name) / "page.html"
            path.write_text(page([found]), encoding="utf-8")
            made = time.perf_counter() - began
            tracks = tracks_of(found.history, found.sources, found.vmem)
            write_chrome_trace(tracks, Path(name) / "trace.json.gz")
            write_perfetto_trace(tracks, Path(name) / "trace.pftrace")
            sizes = [
                (Path(name) / file).stat().st_size / MIB for file in ("page.html", "trace.json.gz", "trace.pftrace")
            ]
            seconds = sorted(open_once(browser, path) for _ in range(5))
            events = len(found.history.steps) + len(found.history.transfers)
            opens = f"{seconds[0]:.2f} … {seconds[-1]:.2f}"
            row(model, f"{events:,}", f"{sizes[0]:.2f}", opens, f"{sizes[1]:.2f}", f"{sizes[2]:.2f}", f"{made:.1f}")


def look_at(model: str, options: ScheduleOptions) -> Seen:
    return seen(of_request(options.request(load_spec(model))))


def open_once(browser: Any, path: Path) -> float:
    began = time.perf_counter()
    with opened(browser, path):
        return time.perf_counter() - began


def picture(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name, started() as browser:
        path = Path(name) / "page.html"
        found = look_at("kimi-k3", K3)
        path.write_text(page([found], *PICTURE_US), encoding="utf-8")
        with opened(browser, path) as shown:
            shown.point_at("hbm", late_transfer(found))
            shown.tab.mouse.down()
            shown.tab.mouse.up()
            shown.tab.mouse.move(0, 0)
            shown.settle()
            shown.tab.screenshot(path=target)
    print(f"wrote {target}: {target.stat().st_size:,} bytes")


def late_transfer(found: Seen) -> int:
    """In the middle of the picture, one that the core waits for: as a number of those of the HBM."""
    path = {part.transfer for part in path_of(found.history) if part.kind == "hbm"}
    hbm = [(index, t) for index, t in enumerate(found.history.transfers) if t.lane == "hbm"]
    middle = sum(PICTURE_US) / 2 * 1e3
    return min((abs(t.began - middle), number) for number, (index, t) in enumerate(hbm) if index in path)[1]


def row(*cells: str) -> None:
    print("  ".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main(sys.argv[1:])

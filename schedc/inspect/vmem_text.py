"""The map of VMEM for a terminal: a line a stretch of addresses, a column a stretch of time."""

from __future__ import annotations

from collections.abc import Sequence

from schedc.inspect.vmem_map import VmemMap
from schedc.ir.program import ROW_BYTES

KIB, MIB = 2**10, 2**20
_SHADES = "·░▒▓█"


def vmem_lines(vmem: VmemMap, title: str, width: int = 72, height: int = 20) -> list[str]:
    """Of every cell, the share of its rows and time in which something is live or, in slots, on its way or to be read.

    What lies beyond the limit is marked with `!`.
    """
    shown = max(vmem.rows, 1)
    lines = [title, ""]
    shares = _shares(vmem, width, height, shown)
    name, unit = ("MiB", MIB) if shown * ROW_BYTES >= MIB else ("KiB", KIB)
    scale = max(len(f"{shown * ROW_BYTES / unit:.1f}"), 5)
    for line in reversed(range(height)):
        first = shown * line // height
        pool = next((pool for pool, at, rows in vmem.pools if at <= first < at + rows), "")
        beyond = first >= vmem.limit_rows - vmem.compiler_rows
        cells = "".join("!" if beyond and share > 0 else _shade(share) for share in shares[line])
        lines.append(f"{first * ROW_BYTES / unit:>{scale}.1f} {name} {cells} {pool}".rstrip())
    peak = min(width - 1, int(width * vmem.peak_ns / vmem.step_ns)) if vmem.step_ns else 0
    lines.append(f"{'':>{scale + 4}} {'':>{peak}}^ peak")
    end = f"{vmem.step_ns / 1e3:,.1f} µs"
    lines.append(f"{'':>{scale + 4}} 0{end:>{width - 1}}")
    return [*lines, "", *summary_lines(vmem)]


def in_words(size: int) -> str:
    """`1.50 MiB`, or `4.0 KiB` of what would be next to nothing in MiB."""
    return f"{size / MIB:,.2f} MiB" if size >= MIB / 10 or not size else f"{size / KIB:,.1f} KiB"


def summary_lines(vmem: VmemMap) -> list[str]:
    """Peak, slack, what the compiler takes, the clash."""

    def size(rows: int) -> str:
        return in_words(rows * ROW_BYTES)

    lines = [
        f"peak      {size(vmem.peak_rows)} live at {vmem.peak_ns / 1e3:,.1f} µs; pools {size(vmem.rows)}",
        *(f"compiler  {kind} {in_words(bytes_)}" for kind, bytes_ in vmem.compiler),
        f"slack     {size(vmem.slack_rows)} of {size(vmem.limit_rows)}"
        if vmem.slack_rows >= 0
        else f"missing   {size(-vmem.slack_rows)} beyond the limit of {size(vmem.limit_rows)}",
    ]
    lines += ["", "live at the peak:"]
    lines += [f"  {size(rows):>12}  {buffer.name}" for buffer, rows in vmem.at_peak()[:12]]
    if len(vmem.at_peak()) > 12:
        lines.append(f"  {'':>12}  and {len(vmem.at_peak()) - 12} more")
    if vmem.clash:
        lines += ["", f"cannot be in VMEM together: {', '.join(vmem.clash)}"]
    return lines


def _shares(vmem: VmemMap, width: int, height: int, rows: int) -> list[list[float]]:
    """[height][width], by area."""
    shares = [[0.0] * width for _ in range(height)]
    filled = {rect.buffer for rect in vmem.rects if rect.kind == "arriving"}
    for rect in vmem.rects:
        if (rect.kind == "live") == (rect.buffer in filled):
            continue
        across = _parts(rect.began, rect.ended, vmem.step_ns, width)
        for line, tall in _parts(rect.row, rect.row + rect.rows, rows, height):
            for column, long in across:
                shares[line][column] += tall * long
    return shares


def _parts(low: float, high: float, whole: float, count: int) -> Sequence[tuple[int, float]]:
    """The cells of 0..whole in `count` that low..high meets, with the part of each."""
    if not whole or high <= low:
        return []
    size = whole / count
    first, last = max(0, int(low / size)), min(count - 1, int(high / size))
    found = []
    for cell in range(first, last + 1):
        part = min(high, (cell + 1) * size) - max(low, cell * size)
        if part > 0:
            found.append((cell, part / size))
    return found


def _shade(share: float) -> str:
    return _SHADES[0] if share <= 0.02 else _SHADES[min(4, 1 + int(min(share, 1.0) * 3.999))]

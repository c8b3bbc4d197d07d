"""Compare the transfers in the scheduled bundles with the order the program gives them."""

from collections.abc import Iterable
from difflib import SequenceMatcher

from .report import CompileReport

Expected = tuple[int, float | None, str]


def check_order(report: CompileReport, expected: Iterable[Expected]) -> list[str]:
    """Differences between the starts in the bundles and the expected `(line, rows, direction)` in program order.

    Empty if they agree. Rows are of 512 bytes, None for a size known only when the kernel runs. A transfer inside a
    loop is expected once, an unrolled one once a copy. Transfers that the compiler adds (windows) are left out.
    """
    found = [(t.line, t.rows, t.direction) for t in report.transfers if t.kind == "start" and t.line]
    wanted = list(expected)
    differences = []
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, wanted, found, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        after = f"after {_name(wanted[a0 - 1])}" if a0 else "at the start"
        missing = ", ".join(_name(transfer) for transfer in wanted[a0:a1]) or "nothing"
        present = ", ".join(_name(transfer) for transfer in found[b0:b1]) or "nothing"
        differences.append(f"{after}: the program has {missing}; the bundles have {present}")
    return differences


def _name(transfer: Expected) -> str:
    line, rows, direction = transfer
    size = "a dynamic number of rows" if rows is None else f"{rows:g} row{'' if rows == 1 else 's'}"
    return f"line {line} ({size} {direction})"

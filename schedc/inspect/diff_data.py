"""What differs between the two schedules of a page, as JSON: texts for its list, operations and phases to be marked.

The page's `differences.js` is the other end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedc.inspect.diff import Diff
from schedc.inspect.diff_text import figure, placed, places, sizes, us
from schedc.inspect.numbered import Numbered
from schedc.ir.program import Program, RemoteStart, Start
from schedc.ir.uses import transfer_name


def diff_data(found: Diff, first: Program, second: Program) -> dict[str, Any]:
    """Of a moved transfer the operations of each that start it where the other does not, or not as often."""
    starts = [_starts(program) for program in (first, second)]
    moved = []
    for one in found.moved:
        own = starts[0].get(one.transfer, {}), starts[1].get(one.transfer, {})
        elsewhere = [_elsewhere(own[0], one.first, one.second), _elsewhere(own[1], one.second, one.first)]
        moved.append([one.transfer, places(one.first), places(one.second), *elsewhere])
    sized = [change for change in found.buffers if not change.only_address]
    return {
        "same": found.same_program,
        "settings": [[name, one or "none", other or "none"] for name, one, other in found.settings],
        "figures": [figure(one) for one in found.figures],
        "phases": [
            [p.phase, us(p.first_us), us(p.second_us), f"{p.change_us:+,.2f}"]
            for p in sorted(found.phases, key=lambda p: -abs(p.change_us))
        ],
        "reordered": list(found.reordered),
        "moved": moved,
        "tiles": [[one.transfer, sizes(one.first), sizes(one.second)] for one in found.tiled],
        "buffers": [[change.buffer, placed(change.first), placed(change.second)] for change in sized],
        "addresses": len(found.buffers) - len(sized),
    }


def _starts(program: Program) -> dict[str, dict[int, str]]:
    """By transfer, the operations that start it and their phases."""
    found: dict[str, dict[int, str]] = {}
    for number, of_number in enumerate(Numbered(program).ops):
        if isinstance(of_number.op, (Start, RemoteStart)):
            found.setdefault(transfer_name(of_number.op), {})[number] = of_number.phase
    return found


def _elsewhere(operations: Mapping[int, str], own: Mapping[str, int], other: Mapping[str, int]) -> list[int]:
    return [number for number, phase in operations.items() if own.get(phase, 0) > other.get(phase, 0)]

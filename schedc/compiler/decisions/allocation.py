"""How buffers share the rows of each pool: against what is live at once, and against no sharing."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.compiler.decisions.decision import Alternative, Decision
from schedc.ir.allocate import pool_problems
from schedc.ir.program import ROW_BYTES, Program


def decisions(program: Program) -> Iterator[Decision]:
    """A pool each. The bound is the most that is live at any time: no addresses can take less."""
    problems = pool_problems(program)
    for pool in program.pools:
        problem = problems[pool.name]
        least = _peak(problem.items) * ROW_BYTES
        taken, apart = pool.rows * ROW_BYTES, sum(item.size for item in problem.items) * ROW_BYTES
        waste = f"{taken - least:,} bytes more than what is live at once" if taken > least else "no packing takes less"
        yield Decision(
            "allocation",
            f"pool {pool.name}, {len(problem.items)} buffers",
            "shared by live ranges",
            waste,
            "bytes of VMEM",
            taken,
            (
                Alternative("what is live at once", least, "a bound, not a packing"),
                Alternative("every buffer apart", apart, "nothing shared"),
            ),
        )


def _peak(items) -> int:
    """Rows that are live at the fullest time."""
    changes: dict[int, int] = {}
    for item in items:
        for first, end in item.spans:
            changes[first] = changes.get(first, 0) + item.size
            changes[end] = changes.get(end, 0) - item.size
    now = most = 0
    for time in sorted(changes):
        now += changes[time]
        most = max(most, now)
    return most

"""Every transfer of the program: where it is started, how it fares, and why it stands there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from schedc.inspect.flow import Flow, Moved
from schedc.inspect.reasons import reason
from schedc.inspect.subject import Subject
from schedc.inspect.table import Column, Table, Value
from schedc.ir.program import ROW_BYTES, RemoteStart, Start
from schedc.ir.uses import transfer_name

COLUMNS = (
    Column("line"),
    Column("kernel"),
    Column("phase"),
    Column("transfer"),
    Column("way"),
    Column("times"),
    Column("bytes", "each"),
    Column("issued", "µs", 1),
    Column("takes", "µs", 1),
    Column("early", "µs", 1),
    Column("stall", "µs", 1),
    Column("idle", "µs", 1),
    Column("for"),
    Column("reason", words=True),
)
"""`bytes` of one execution. `issued`: the first time. `takes`: from issue to arrival; `idle`: of the HBM before it;
both in the mean. `early`: the least time it was there before it was asked for, below 0 if late. `stall`: of the core
for it, in all."""
_BRIEF = ("line", "phase", "transfer", "times", "bytes", "early", "stall", "reason")


def _note(subject: Subject) -> str:
    file = "program.ir" if subject.source is None else subject.source.name
    return f"one device, position and experts as the prediction takes them; lines are of {file} and kernel.py"


def transfers(subject: Subject) -> Table:
    """A row an operation, over all its executions; one that is never executed has no times."""
    flow = subject.flow
    by_operation: dict[int, list[Moved]] = defaultdict(list)
    for moved in flow.moved:
        by_operation[flow.executed[moved.at].op].append(moved)
    rows = [
        (*_where(flow, number), *_times(flow, number, by_operation[number]))
        for number, placed in enumerate(flow.numbered.ops)
        if isinstance(placed.op, (Start, RemoteStart))
    ]
    return Table("transfers", COLUMNS, tuple(rows), (_note(subject),), _BRIEF)


def executions(subject: Subject) -> Table:
    """A row an execution, in the order of issue, with the counters of its loops."""
    flow = subject.flow
    at = [column.name for column in COLUMNS].index("times")
    columns = (*COLUMNS[:at], Column("iteration"), *COLUMNS[at:])
    rows = []
    for moved in flow.moved:
        done = flow.executed[moved.at]
        iteration = ", ".join(f"{name}={value}" for name, value in done.iteration)
        rows.append((*_where(flow, done.op), iteration, *_times(flow, done.op, [moved])))
    return Table("transfers", columns, tuple(rows), (_note(subject),), _BRIEF)


def _where(flow: Flow, number: int) -> tuple[Value, ...]:
    numbered = flow.numbered
    placed = numbered.ops[number]
    op = placed.op
    assert isinstance(op, (Start, RemoteStart))
    arrays = {array.name for array in numbered.program.arrays}
    way = "device" if isinstance(op, RemoteStart) else "out" if op.target.storage in arrays else "in"
    return numbered.lines[number], numbered.kernel_lines[number], placed.phase, transfer_name(op), way


def _times(flow: Flow, number: int, moved: Sequence[Moved]) -> tuple[Value, ...]:
    op = flow.numbered.ops[number].op
    size = op.source.rows * ROW_BYTES if isinstance(op, (Start, RemoteStart)) else 0
    if not moved:
        return (0, size, None, None, None, None, None, None, "never executed with these inputs")
    count = len(moved)
    early = [one.early_ns for one in moved if one.early_ns is not None]
    used = next((one.use for one in moved if one.use is not None), None)
    waited = next((one.wait for one in moved if one.wait is not None), None)
    needs = used if used is not None else waited
    return (
        count,
        size,
        _us(moved[0].issued_ns),
        _us(sum(one.ended_ns - one.issued_ns for one in moved) / count),
        _us(min(early)) if early else None,
        _us(sum(one.stall_ns for one in moved)),
        _us(sum(one.idle_ns for one in moved) / count),
        "" if needs is None else flow.executed[needs].phase,
        reason(flow, moved),
    )


def _us(ns: float) -> float:
    return round(ns / 1e3, 3)

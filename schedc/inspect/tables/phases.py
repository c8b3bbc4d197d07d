"""The phases of a step: what each computes and moves, how long it takes, and what it waits for."""

from __future__ import annotations

from collections import defaultdict

from schedc.inspect.flow import Flow
from schedc.inspect.reasons import where
from schedc.inspect.subject import Subject
from schedc.inspect.table import Column, Table
from schedc.ir.program import RemoteStart, Start
from schedc.ir.uses import transfer_name

COLUMNS = (
    Column("phase"),
    Column("times"),
    Column("transfers"),
    Column("bytes", "a step"),
    Column("cycles", "a step"),
    Column("time", "µs", 2),
    Column("share", "%", 1),
    Column("stall", "µs", 2),
    Column("idle", "µs", 2),
    Column("unasked", "µs", 2),
    Column("reason", words=True),
)
"""Over all executions. `bytes`: what its waits take; `transfers`: started in it. `idle`: of the HBM while the core is
in it, `unasked` the part with nothing started."""
_BRIEF = ("phase", "times", "transfers", "bytes", "time", "stall", "idle", "unasked", "reason")


def phases(subject: Subject) -> Table:
    """In program order, with what the core waits for and what keeps the HBM idle."""
    flow = subject.flow
    step = flow.timeline.step_ns or 1.0
    waits, gaps = _waits(flow), _gaps(flow)
    rows = []
    for phase in flow.timeline.phases:
        rows.append(
            (
                phase.name,
                phase.executions,
                phase.transfers,
                phase.bytes_awaited,
                round(phase.cycles),
                round(phase.time_ns / 1e3, 3),
                round(100 * phase.time_ns / step, 2),
                round(phase.stall_ns / 1e3, 3),
                round(phase.hbm_idle_ns / 1e3, 3),
                round(phase.hbm_unasked_ns / 1e3, 3),
                _reason(waits[phase.name], phase.stall_ns, gaps[phase.name], phase.hbm_unasked_ns),
            )
        )
    clock = subject.priced.clock_ghz * 1000
    note = f"predicted step of {flow.timeline.step_ns / 1e3:,.1f} µs at {clock:,.0f} MHz, by {flow.timeline.priced_by}"
    return Table("phases", COLUMNS, tuple(rows), (note,), _BRIEF)


def _waits(flow: Flow) -> dict[str, dict[str, float]]:
    """By phase, ns that the core waited for each transfer, or at what else."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    explained: dict[int, float] = defaultdict(float)
    for moved in flow.moved:
        if moved.wait is not None and moved.stall_ns:
            op = flow.numbered.ops[flow.executed[moved.at].op].op
            assert isinstance(op, (Start, RemoteStart))
            what = "from a peer" if isinstance(op, RemoteStart) else transfer_name(op)
            found[flow.executed[moved.wait].phase][what] += moved.stall_ns
            explained[moved.wait] += moved.stall_ns
    for place, stall in flow.stalls.items():
        done = flow.executed[place]
        if stall - explained[place] > 1.0:
            found[done.phase][done.signals.partition("[")[0]] += stall - explained[place]
    return found


def _gaps(flow: Flow) -> dict[str, dict[str, float]]:
    """By the phase that ends it, ns without anything in flight, and what the transfer that ends it came after."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for moved in flow.moved:
        if moved.idle_ns > 1.0:
            place = moved.freed if moved.known is None else max(moved.known, moved.freed or -1)
            what = "this phase" if place is None else where(flow, place)
            found[flow.executed[moved.at].phase][what] += moved.idle_ns
    return found


def _reason(waits: dict[str, float], stall: float, gaps: dict[str, float], unasked: float) -> str:
    parts = []
    if stall >= 100.0 and waits:
        parts.append("waits for " + ", ".join(f"{what} {ns / 1e3:.1f} µs" for what, ns in _largest(waits)[:3]))
    if unasked >= 100.0 and gaps:
        what, _ = _largest(gaps)[0]
        parts.append(f"nothing could be started before {what}")
    return "; ".join(parts)


def _largest(times: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(times.items(), key=lambda item: -item[1])

"""What devices say to each other: the phases that send, how much, by which algorithm, and what is waited for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from schedc.inspect.subject import ModelSubject, Subject
from schedc.inspect.table import Column, Table
from schedc.ir.program import ROW_BYTES, RemoteStart
from schedc.ir.uses import is_remote, transfer_name

COLUMNS = (
    Column("phase"),
    Column("times"),
    Column("messages", "each"),
    Column("bytes", "each"),
    Column("peers"),
    Column("storage"),
    Column("time", "µs", 2),
    Column("exposed", "µs", 2),
    Column("awaited"),
    Column("reason", words=True),
)
"""`messages` and `bytes` of one execution of the phase; `time` and `exposed` (what the core waits for what it is sent
from there) over the whole step."""
_BRIEF = ("phase", "times", "messages", "bytes", "time", "exposed", "reason")


@dataclass
class _Sent:
    messages: int = 0
    bytes: int = 0
    signals: int = 0
    storage: dict[str, None] = field(default_factory=dict)
    exposed: float = 0.0
    waits: dict[str, None] = field(default_factory=dict)
    peers: set[str] = field(default_factory=set)


def collectives(subject: Subject) -> Table:
    """In program order. Empty for a program of one device."""
    flow = subject.flow
    sent: dict[str, _Sent] = defaultdict(_Sent)
    for done in flow.executed:
        op = flow.numbered.ops[done.op].op
        if isinstance(op, RemoteStart):
            found = sent[done.phase]
            found.messages += 1
            found.bytes += op.source.rows * ROW_BYTES
            found.storage[transfer_name(op)] = None
            found.peers.add(str(op.peer))
        elif is_remote(op):
            sent[done.phase].signals += 1
    for moved in flow.moved:
        done = flow.executed[moved.at]
        if isinstance(flow.numbered.ops[done.op].op, RemoteStart) and moved.wait is not None:
            sent[done.phase].exposed += moved.stall_ns
            sent[done.phase].waits[flow.executed[moved.wait].phase] = None
    rows = []
    for phase in flow.timeline.phases:
        if phase.name not in sent:
            continue
        found, times = sent[phase.name], max(1, phase.executions)
        rows.append(
            (
                phase.name,
                phase.executions,
                found.messages // times,
                found.bytes // times,
                len(found.peers),
                ", ".join(found.storage),
                round(phase.time_ns / 1e3, 3),
                round(found.exposed / 1e3, 3),
                ", ".join(dict.fromkeys(found.waits)),
                _reason(found, phase.stall_ns),
            )
        )
    return Table("collectives", COLUMNS, tuple(rows), (_note(subject),), _BRIEF)


def _note(subject: Subject) -> str:
    devices = subject.program.devices
    if devices == 1:
        return "one device"
    if not isinstance(subject, ModelSubject):
        return f"{devices} devices"
    talk = subject.shape.communication
    link = f"{devices} devices; partial outputs are summed by {talk.all_reduce}, {talk.wire} on the wire"
    link += "".join(f"; {site} by {how}" for site, how in talk.collectives)
    return link + "".join(f"; {site} in {wire}" for site, wire in talk.wires)


def _reason(found: _Sent, stall: float) -> str:
    if not found.messages:
        return "signals only" if found.signals else ""
    later = list(found.waits)
    hidden = "hidden" if found.exposed < 100.0 else f"the core waits {found.exposed / 1e3:.1f} µs for what comes back"
    where = f" in {', '.join(later[:3])}{', …' if len(later) > 3 else ''}" if later else ""
    own = f"; {stall / 1e3:.1f} µs of waits in the phase itself" if stall >= 100.0 and found.exposed < stall else ""
    return f"{hidden}{where}{own}"

"""The semaphores: who gives to each, who takes, and what the core waits at it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from schedc.inspect.subject import Subject
from schedc.inspect.table import Column, Table
from schedc.ir.program import Await, RemoteStart, Signal, Start, Wait

COLUMNS = (
    Column("semaphore"),
    Column("count"),
    Column("kind"),
    Column("in"),
    Column("given", "a step"),
    Column("taken", "a step"),
    Column("signals"),
    Column("waits"),
    Column("peak"),
    Column("stall", "µs", 1),
    Column("most_stall", "µs", 1),
    Column("reason", words=True),
)
"""`given` and `taken` are what all signals add and all waits take: rows of 512 bytes that transfers bring, or signals
of a semaphore without transfers, as `in` says. `signals` and `waits` are executions: a wait may take what several
transfers bring. `peak`: the most transfers on their way at once; `most_stall`: the longest single wait."""
_BRIEF = ("semaphore", "count", "in", "given", "taken", "signals", "waits", "peak", "stall", "reason")


@dataclass
class _Use:
    given: int = 0
    taken: int = 0
    signals: int = 0
    waits: int = 0
    peak: int = 0
    stall: float = 0.0
    longest: float = 0.0
    givers: dict[str, None] = field(default_factory=dict)
    takers: dict[str, None] = field(default_factory=dict)


def semaphores(subject: Subject) -> Table:
    """In the order of declaration. Times are those of the prediction, on one device."""
    flow = subject.flow
    uses: dict[str, _Use] = defaultdict(_Use)
    ops = flow.numbered.ops
    for place, done in enumerate(flow.executed):
        op = ops[done.op].op
        if isinstance(op, (Start, RemoteStart, Signal)):
            for name in filter(None, (done.signals, done.sent)):
                use = uses[_name(name)]
                use.given += done.amount
                use.signals += 1
                use.givers[done.phase] = None
        elif isinstance(op, (Wait, Await)):
            use = uses[_name(done.signals)]
            use.taken += done.amount
            use.waits += 1
            use.takers[done.phase] = None
            stall = flow.stalls[place]
            use.stall += stall
            use.longest = max(use.longest, stall)
    for name, peak in _peaks(subject).items():
        uses[name].peak = peak
    rows = []
    for semaphore in subject.program.semaphores:
        use = uses[semaphore.name]
        rows.append(
            (
                semaphore.name,
                semaphore.count,
                semaphore.kind,
                "rows" if semaphore.kind == "dma" else "signals",
                use.given,
                use.taken,
                use.signals,
                use.waits,
                use.peak,
                round(use.stall / 1e3, 3),
                round(use.longest / 1e3, 3),
                _reason(use, semaphore.count),
            )
        )
    total = sum(semaphore.count for semaphore in subject.program.semaphores)
    limit = subject.target.capability.semaphores
    return Table("semaphores", COLUMNS, tuple(rows), (f"{total} of {limit} semaphores of the chip",), _BRIEF)


def _name(element: str) -> str:
    return element.partition("[")[0]


def _peaks(subject: Subject) -> dict[str, int]:
    """By semaphore, the most transfers that had been issued and were not awaited."""
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    flow = subject.flow
    for moved in flow.moved:
        name = _name(flow.executed[moved.at].signals)
        until = flow.executed[moved.wait].ended_ns if moved.wait is not None else flow.timeline.step_ns
        changes[name] += [(moved.issued_ns, 1), (max(until, moved.issued_ns), -1)]
    peaks = {}
    for name, of_name in changes.items():
        now = most = 0
        for _, change in sorted(of_name):
            now += change
            most = max(most, now)
        peaks[name] = most
    return peaks


def _reason(use: _Use, count: int) -> str:
    if not use.signals and not use.waits:
        return "not used with these inputs"
    each = "one a slot; " if count > 1 else ""
    givers, takers = (_list(list(names)) for names in (use.givers, use.takers))
    stall = "" if use.stall < 100.0 else f"; the core waits at it for {use.stall / 1e3:.1f} µs a step"
    return f"{each}given by {givers}, taken by {takers}{stall}"


def _list(phases: list[str]) -> str:
    named = [phase or "what is in no phase" for phase in phases]
    return f"{', '.join(named[:4])}{', …' if len(named) > 4 else ''}" or "nobody"

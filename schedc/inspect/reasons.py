"""Why a transfer stands where it stands, in words: what allowed it, what it finds, and who needs it when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schedc.inspect.flow import Flow, Moved
from schedc.ir.program import Await, Barrier, Compute, RemoteStart, SetScalar, Start, Wait

_NEAR_NS = 100.0
"""What lies closer together than this is said to come at once."""


def us(ns: float) -> str:
    return f"{ns / 1e3:.1f} µs"


def reason(flow: Flow, moved: Sequence[Moved]) -> str:
    """Of one transfer over its executions: the most frequent words, the mean times."""
    after, freed = _most([_after(flow, one) for one in moved]), _freed(flow, moved)
    if freed == after.replace("issued after", "slot freed by"):
        after, freed = f"{after}, which frees the slot", ""
    parts = [
        after,
        _most([_known(flow, one) for one in moved]),
        freed,
        _idle(moved),
        _needed(flow, moved),
    ]
    return "; ".join(part for part in parts if part)


def where(flow: Flow, place: int, here: int | None = None) -> str:
    """An executed operation in words; with `here`, how many iterations before that place it was."""
    done = flow.executed[place]
    op = flow.numbered.ops[done.op].op
    what = f"{op.kind} of {done.phase}" if isinstance(op, Compute) and done.phase else _plain(flow, place)
    return what if here is None else f"{what}{_before(flow, place, here)}"


def _plain(flow: Flow, place: int) -> str:
    done = flow.executed[place]
    of_phase = f" of {done.phase}" if done.phase else ""
    match flow.numbered.ops[done.op].op:
        case Compute(kind):
            return kind + of_phase
        case SetScalar(array):
            return f"{array} is set in {done.phase}" if done.phase else f"{array} is set"
        case Wait() | Await():
            return f"the wait for {done.signals}{of_phase}"
        case Start() | RemoteStart():
            return f"a transfer{of_phase}"
        case Barrier():
            return "the barrier"
        case _:
            return f"an operation{of_phase}"


def _before(flow: Flow, place: int, here: int) -> str:
    then, now = dict(flow.executed[place].iteration), dict(flow.executed[here].iteration)
    for counter, value in now.items():
        if counter in then and then[counter] != value:
            steps = value - then[counter]
            return f" ({steps} {counter} before)" if steps > 0 else ""
    return ""


def _after(flow: Flow, moved: Moved) -> str:
    """The last operation before it that is no start."""
    here = flow.executed[moved.at].phase
    for place in range(moved.at - 1, -1, -1):
        done = flow.executed[place]
        if done.phase != here:
            break
        if isinstance(flow.numbered.ops[done.op].op, (Compute, Wait, Await, Barrier)):
            return f"issued after {where(flow, place)}"
    return f"issued at the beginning of {here}" if here else "issued between phases"


def _known(flow: Flow, moved: Moved) -> str:
    if moved.known is None:
        return ""
    return f"address known since {where(flow, moved.known, moved.at)}"


def _freed(flow: Flow, moved: Sequence[Moved]) -> str:
    arrays = {array.name for array in flow.numbered.program.arrays}
    outward = all(span[0] in arrays for span in flow.executed[moved[0].at].writes)
    freed = [one for one in moved if one.freed is not None]
    if not freed:
        return "" if outward else "into a slot that nothing used before"
    what = _most([where(flow, one.freed, one.at) for one in freed if one.freed is not None])
    since = _mean([one.issued_ns - flow.executed[one.freed].ended_ns for one in freed if one.freed is not None])
    verb = "written by" if outward else "slot freed by"
    when = "" if since < _NEAR_NS else f" {us(since)} before"
    return f"{verb} {what}{when}"


def _idle(moved: Sequence[Moved]) -> str:
    idle = _mean([one.idle_ns for one in moved])
    return f"HBM idle {us(idle)} before it" if idle >= _NEAR_NS else ""


def _needed(flow: Flow, moved: Sequence[Moved]) -> str:
    awaited = [one for one in moved if one.wait is not None]
    if not awaited:
        return "never awaited"
    who = _most([flow.executed[one.use if one.use is not None else one.wait or 0].phase for one in awaited])
    stall, early = _mean([one.stall_ns for one in awaited]), _mean([one.early_ns or 0.0 for one in awaited])
    if stall >= _NEAR_NS:
        return f"the core waits {us(stall)} for it in {who or 'its wait'}"
    needs = who or "its wait"
    return f"there {us(early)} before {needs} needs it" if early >= _NEAR_NS else f"there just when {needs} needs it"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _most(texts: Sequence[str]) -> str:
    """The most frequent; of several the first."""
    return Counter(texts).most_common(1)[0][0] if texts else ""

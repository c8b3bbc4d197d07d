"""The buffers in VMEM: where each lies, from which phase to which it is live, and why not shorter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from schedc.inspect.numbered import Numbered
from schedc.inspect.subject import Subject
from schedc.inspect.table import Column, Table, Value
from schedc.ir.live import LiveRange, live_ranges
from schedc.ir.program import ROW_BYTES, Compute, Loop, Program, RemoteStart, Start

COLUMNS = (
    Column("pool"),
    Column("address"),
    Column("buffer"),
    Column("slots"),
    Column("rows"),
    Column("bytes"),
    Column("first"),
    Column("last"),
    Column("from"),
    Column("to"),
    Column("reason", words=True),
)
"""`address` and `rows` in rows of 512 bytes, `bytes` of all slots; `first` and `last` count operations from 0."""
_BRIEF = ("pool", "address", "buffer", "slots", "bytes", "from", "to", "reason")


def buffers(subject: Subject) -> Table:
    """By pool and address; the parts of a buffer's life that others may use its bytes in are in the reason."""
    program = subject.program
    numbered = Numbered(program, subject.lines)
    ranges = {live.buffer: live for live in live_ranges(program)}
    by_peers = {op.op.target.storage for op in numbered.ops if isinstance(op.op, RemoteStart)}
    filled = {op.op.target.storage for op in numbered.ops if isinstance(op.op, Start)}
    order = {pool.name: place for place, pool in enumerate(program.pools)}
    loops = _loops(numbered)
    rows: list[tuple[Value, ...]] = []
    for buffer in sorted(program.buffers, key=lambda b: (order[b.pool], b.address or 0, b.name)):
        size = buffer.slots * buffer.rows * ROW_BYTES
        live = ranges.get(buffer.name)
        where: tuple[Value, ...] = (buffer.pool, buffer.address, buffer.name, buffer.slots, buffer.rows, size)
        if live is None:
            rows.append((*where, None, None, "", "", "nothing uses it"))
            continue
        reason = _reason(numbered, loops, live, buffer.name in by_peers, buffer.name in filled)
        first, last = (_phase(numbered, at) for at in (live.first, live.last))
        rows.append((*where, live.first, live.last, first, last, reason))
    return Table("buffers", COLUMNS, tuple(rows), (_peak(program),), _BRIEF)


def _peak(program: Program) -> str:
    pools = ", ".join(f"{pool.name} {pool.rows * ROW_BYTES:,}" for pool in program.pools)
    total = sum(pool.rows for pool in program.pools) * ROW_BYTES
    limit = dict(program.attributes).get("vmem_limit_bytes")
    of = f" of {limit:,}" if isinstance(limit, int) else ""
    return f"{total:,}{of} bytes of VMEM: {pools}"


def _phase(numbered: Numbered, at: int) -> str:
    """Of an operation; of a loop between phases its counter, of what else is there its line."""
    number = min(at, len(numbered.ops) - 1)
    placed = numbered.ops[number]
    if placed.phase:
        return placed.phase
    return f"loop {placed.op.counter}" if isinstance(placed.op, Loop) else f"line {numbered.lines[number]}"


def _reason(
    numbered: Numbered, loops: Sequence[tuple[str, int, int]], live: LiveRange, by_peers: bool, filled: bool
) -> str:
    """`loops` are (counter, first operation, end), outermost first."""
    if by_peers:
        return "peers write it when they come to it: live all the time"
    users = _users(numbered, live.buffer)
    whole = (name for name, at, end in loops if any(first <= at and end <= stop for first, stop in live.spans))
    kept = "".join(f"; needed all through loop {name}" for name in islice(whole, 1))
    kind = "filled from HBM" if filled else "computed"
    gaps = f"; others may have its bytes between {len(live.spans)} spans of its life" if len(live.spans) > 1 else ""
    return f"{kind}, used in {', '.join(users[:4])}{', …' if len(users) > 4 else ''}{kept}{gaps}"


def _loops(numbered: Numbered) -> list[tuple[str, int, int]]:
    found = []
    for at, placed in enumerate(numbered.ops):
        if isinstance(placed.op, Loop):
            end, depth = at + 1, len(placed.around)
            while end < len(numbered.ops) and len(numbered.ops[end].around) > depth:
                end += 1
            found.append((placed.op.counter, at, end))
    return found


def _users(numbered: Numbered, buffer: str) -> list[str]:
    """Phases whose computations touch it, or what kind those between phases are, in program order."""
    found = (
        placed.phase or placed.op.kind
        for placed in numbered.ops
        if isinstance(placed.op, Compute) and any(operand.region.storage == buffer for operand in placed.op.operands)
    )
    return list(dict.fromkeys(found)) or ["no computation"]

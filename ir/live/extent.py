"""From the first operation that writes a buffer to the last that needs it, with the loops that carry it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schedc.ir.expr import Counter, Element, Expr, leaves
from schedc.ir.live.carried import Carried
from schedc.ir.program import BLOCKS, Compute, Loop, Op, Program, RemoteStart, Start, Wait, scalars_set, walk
from schedc.ir.uses import completions, operands, values


@dataclass
class Extent:
    parts: list[tuple[int, int]] = field(default_factory=list)
    """Operations that touch the buffer, and loops that need it all the time: first..end-1."""
    by_peers: bool = False
    """Other devices write it."""

    @property
    def first(self) -> int:
        return min(first for first, _ in self.parts)

    @property
    def last(self) -> int:
        return max(end for _, end in self.parts) - 1


def transfers_of(program: Program) -> dict[str, set[str]]:
    """By semaphore, the buffers from or to which transfers signal it."""
    names = {buffer.name for buffer in program.buffers}
    found: dict[str, set[str]] = defaultdict(set)
    for op in walk(program.body):
        for semaphore, operand in completions(op):
            found[semaphore.name] |= {operand.region.storage} & names
    return found


def touches(program: Program) -> dict[int, set[str]]:
    """The buffers that an operation touches, by its number in the order of `walk`."""
    names = {buffer.name for buffer in program.buffers}
    by_semaphore = transfers_of(program)
    found: dict[int, set[str]] = {}
    for number, op in enumerate(walk(program.body)):
        match op:
            case Start() | RemoteStart() | Compute():
                found[number] = {operand.region.storage for operand in operands(op)} & names
            case Wait(semaphore):
                found[number] = by_semaphore.get(semaphore.name, set())
    return found


def extents(program: Program, touched: Mapping[int, set[str]]) -> dict[str, Extent]:
    """By buffer, for the buffers that are used."""
    found: dict[str, Extent] = defaultdict(Extent)
    uneven: list[tuple[str, int, int]] = []
    carried = Carried(program, transfers_of(program))
    names = {buffer.name for buffer in program.buffers}
    for number, buffers in touched.items():
        for buffer in buffers:
            found[buffer].parts.append((number, number + 1))
    number = 0

    def visit(ops: tuple[Op, ...]) -> None:
        nonlocal number
        for op in ops:
            here = number
            number += 1
            if isinstance(op, RemoteStart) and op.target.storage in names:
                found[op.target.storage].by_peers = True
            if isinstance(op, BLOCKS):
                visit(op.body)
            if isinstance(op, Loop):
                for buffer in carried.by(op):
                    found[buffer].parts.append((here, number))
                uneven.extend((buffer, here, number) for buffer in _written_unevenly(op) & names)

    visit(program.body)
    for buffer, first, end in uneven:
        if found[buffer].last >= end:
            found[buffer].parts.append((first, end))
    return found


def _written_unevenly(loop: Loop) -> set[str]:
    """Storages of which an iteration may leave something as an earlier one wrote it.

    What is written, or whether it is, depends on the counter or on a scalar that the loop sets.
    """
    changing = {array for op in walk(loop.body) for array in scalars_set(op)}
    found: set[str] = set()

    def varies(exprs: Iterable[Expr]) -> bool:
        read = [leaf for expr in exprs for leaf in leaves(expr)]
        return Counter(loop.counter) in read or any(isinstance(e, Element) and e.array in changing for e in read)

    def visit(ops: tuple[Op, ...], uneven: bool) -> None:
        for op in ops:
            if isinstance(op, BLOCKS):
                visit(op.body, uneven or varies(values(op)))
            elif not isinstance(op, RemoteStart):  # which writes on the peer
                regions = [operand.region for operand in operands(op) if operand.writes]
                found.update(r.storage for r in regions if uneven or varies((r.offset, r.slot)))

    visit(loop.body, False)
    return found

"""What the operations of a phase touch, as far as it says which of two phases must come first.

VMEM buffers, HBM arrays, arrays of scalars in SMEM and semaphores alike. A wait touches what the transfers of its
semaphore read and write, wherever they are started: until then they are under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schedc.ir.expr import Const, elements
from schedc.ir.program import Barrier, Op, Operand, Region, SemaphoreRef, Wait, scalars_set, walk
from schedc.ir.uses import completions, expressions, operands, semaphores

EVERYTHING = "all devices"
"""What a barrier touches: no phase moves across it."""


@dataclass(frozen=True)
class Access:
    """Rows `region` of a storage (None: all of it, or a semaphore or scalars), read or `written`."""

    storage: str
    written: bool
    region: Region | None = None

    def conflicts(self, other: Access) -> bool:
        """Whether the order of the two matters. Only constants tell regions of a storage apart."""
        if not (self.written or other.written):
            return False
        a, b = self.region, other.region
        if a is None or b is None:
            return True
        if isinstance(a.slot, Const) and isinstance(b.slot, Const) and a.slot != b.slot:
            return False
        if not (isinstance(a.offset, Const) and isinstance(b.offset, Const)):
            return True
        return a.offset.value < b.offset.value + b.rows and b.offset.value < a.offset.value + a.rows


InFlight = Mapping[str, frozenset[Access]]
"""Semaphore → what the transfers that count on it access."""


def in_flight(ops: Iterable[Op]) -> InFlight:
    """Of all operations of a step."""
    found: dict[str, set[Access]] = {}
    for op in ops:
        for semaphore, operand in completions(op):
            found.setdefault(semaphore.name, set()).add(_access(operand))
    return {name: frozenset(accesses) for name, accesses in found.items()}


def accesses(ops: tuple[Op, ...], flying: InFlight) -> frozenset[Access]:
    """Of the operations and what is in them."""
    found: set[Access] = set()
    for op in walk(ops):
        found.update(map(_access, operands(op)))
        found.update(_semaphore(ref) for ref in semaphores(op))
        found.update(Access(name, True) for name in scalars_set(op))
        found.update(Access(element.array, False) for expr in expressions(op) for element in elements(expr))
        if isinstance(op, Wait):
            found.update(flying.get(op.semaphore.name, ()))
        elif isinstance(op, Barrier):
            found.add(Access(EVERYTHING, True))
    return frozenset(found)


def _access(operand: Operand) -> Access:
    return Access(operand.region.storage, operand.writes, operand.region)


def _semaphore(ref: SemaphoreRef) -> Access:
    return Access(f"semaphore {ref.name}", True, Region(ref.name, 1, slot=ref.index))

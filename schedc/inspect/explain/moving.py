"""A program with one transfer started earlier: the places above it, from the nearest on, and the program for each.

A start keeps its guards. It moves up past its neighbours, into the phases before its own, and past whole loops, guards
and switches, up to the beginning of the loop, the case or the program that it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from schedc.ir.program import BLOCKS, Op, Phase, Program, When, numbered, size

Path = tuple[int, ...]
"""Places in nested bodies, outermost first."""


@dataclass(frozen=True)
class Spot:
    """Before the operation at `path`, or at the end of the body there. `passed` operations by number are then below."""

    path: Path
    passed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Movable:
    """One start of a program: `number` in the order of `walk`."""

    program: Program
    number: int

    def spots(self) -> Iterator[Spot]:
        """The nearest first; each passes more than the one before."""
        path = _path_of(self.program.body, self.number)
        place = len(path) - 1
        while place and isinstance(self._at(path[:place]), When):  # out of its guards, which it takes along
            place -= 1
        at = path[: place + 1]
        passed: tuple[int, ...] = ()
        told: tuple[int, ...] = ()
        while True:
            if at[-1] > 0:
                at, passed = self._above(at, passed)
            elif len(at) > 1 and isinstance(self._at(at[:-1]), Phase):
                at = at[:-1]  # the phase's own place: before it, nothing is passed
                continue
            else:
                return
            if passed != told:
                yield Spot(at, passed)
                told = passed

    def _above(self, at: Path, passed: tuple[int, ...]) -> tuple[Path, tuple[int, ...]]:
        """One step up from before `at`: to the end of a phase, or before whatever else stands there."""
        before = (*at[:-1], at[-1] - 1)
        op = self._at(before)
        if isinstance(op, Phase):
            return (*before, len(op.body)), passed
        first = _number_of(self.program.body, before)
        return before, (*passed, *range(first, first + size(op)))

    def moved_to(self, spot: Spot) -> Program:
        """Without addresses: they are decided anew."""
        path = _path_of(self.program.body, self.number)
        unit: Op = self._at(path)
        for length in range(len(path) - 1, 0, -1):
            guard = self._at(path[:length])
            if not isinstance(guard, When):
                break
            unit = When(guard.conditions, (unit,))
        body = _inserted(_removed(self.program.body, path), spot.path, unit)
        return without_addresses(replace(self.program, body=body))

    def _at(self, path: Path) -> Op:
        op: Op | None = None
        body = self.program.body
        for place in path:
            op = body[place]
            body = op.body if isinstance(op, BLOCKS) else ()
        assert op is not None
        return op


def without_addresses(program: Program) -> Program:
    buffers = tuple(replace(buffer, address=None) for buffer in program.buffers)
    return replace(program, buffers=buffers, pools=tuple(replace(pool, rows=0) for pool in program.pools))


def _path_of(ops: tuple[Op, ...], number: int) -> Path:
    for place, (at, op) in enumerate(numbered(ops)):
        if at == number:
            return (place,)
        if number < at + size(op) and isinstance(op, BLOCKS):
            return (place, *_path_of(op.body, number - at - 1))
    raise IndexError(number)


def _number_of(ops: tuple[Op, ...], path: Path) -> int:
    number = sum(map(size, ops[: path[0]]))
    op = ops[path[0]]
    return number if len(path) == 1 or not isinstance(op, BLOCKS) else number + 1 + _number_of(op.body, path[1:])


def _removed(ops: tuple[Op, ...], path: Path) -> tuple[Op, ...]:
    """A guard that has nothing left goes too; what stands before it keeps its place."""
    place, rest = path[0], path[1:]
    if not rest:
        return (*ops[:place], *ops[place + 1 :])
    op = ops[place]
    assert isinstance(op, BLOCKS)
    inner = replace(op, body=_removed(op.body, rest))  # type: ignore[arg-type]
    left = () if isinstance(inner, When) and not inner.body else (inner,)
    return (*ops[:place], *left, *ops[place + 1 :])


def _inserted(ops: tuple[Op, ...], path: Path, unit: Op) -> tuple[Op, ...]:
    """All of it is above what was removed, so that the places hold."""
    place, rest = path[0], path[1:]
    if not rest:
        return (*ops[:place], unit, *ops[place:])
    op = ops[place]
    assert isinstance(op, BLOCKS)
    return (*ops[:place], replace(op, body=_inserted(op.body, rest, unit)), *ops[place + 1 :])  # type: ignore[arg-type]

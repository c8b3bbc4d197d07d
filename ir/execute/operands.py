"""Regions, semaphores and peers of one device as functions of no arguments, checked against the declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from schedc.ir.execute.fault import refuse
from schedc.ir.execute.steps import Rows, numbers
from schedc.ir.execute.values import Value, Values, is_fixed
from schedc.ir.expr import Expr
from schedc.ir.program import Program, Region, SemaphoreRef


class Operands:
    def __init__(self, program: Program, scalars: Mapping[str, Sequence[int]], rank: int, draw: int = 0) -> None:
        self.values = Values(program, scalars, rank, draw)
        self._rank, self._devices = rank, program.devices
        self._shapes = {array.name: (array.rows, 1) for array in program.arrays}
        self._shapes |= {buffer.name: (buffer.rows, buffer.slots) for buffer in program.buffers}
        self._numbers = numbers(program)
        self._counts = {semaphore.name: semaphore.count for semaphore in program.semaphores}

    def rows(self, region: Region) -> Callable[[], Rows]:
        storage, length = region.storage, region.rows
        if storage not in self._shapes:
            return lambda: refuse("undeclared", f"there is no storage {storage}")
        rows, slots = self._shapes[storage]
        offset_of, slot_of = self.values.compile(region.offset), self.values.compile(region.slot)

        def find() -> Rows:
            offset, slot = offset_of(), slot_of()
            if not 0 <= slot < slots:
                refuse("out-of-range", f"slot {slot} of {storage}, which has {slots}")
            if offset < 0 or length < 0 or offset + length > rows:
                refuse("out-of-range", f"rows {offset}..{offset + length} of {storage}, which has {rows}")
            first = slot * rows + offset
            return Rows(storage, first, first + length)

        return cache(find) if is_fixed(region.offset) and is_fixed(region.slot) else find

    def pair(self, source: Region, target: Region) -> Callable[[], tuple[Rows, Rows]]:
        """Both ends of a transfer."""
        if source.rows != target.rows:
            return lambda: refuse("out-of-range", f"{source.rows} rows into {target.rows}")
        read, written = self.rows(source), self.rows(target)
        return lambda: (read(), written())

    def semaphore(self, ref: SemaphoreRef) -> Value:
        """Its number."""
        name = ref.name
        if name not in self._counts:
            return lambda: refuse("undeclared", f"there is no semaphore {name}")
        count, first, index_of = self._counts[name], self._numbers[name], self.values.compile(ref.index)

        def find() -> int:
            index = index_of()
            return first + index if 0 <= index < count else refuse("out-of-range", f"{name}[{index}] of {count}")

        return cache(find) if is_fixed(ref.index) else find

    def peer(self, expr: Expr) -> Value:
        value = self.values.compile(expr)

        def find() -> int:
            peer = value()
            if peer == self._rank or not 0 <= peer < self._devices:
                refuse("bad-peer", f"device {self._rank} of {self._devices} addresses device {peer}")
            return peer

        return find

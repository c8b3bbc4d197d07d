"""The program as refusals speak of it: each operation by its index in the order of `program.walk`, with its line."""

from __future__ import annotations

from schedc.ir.program import Await, Compute, Program, RemoteStart, Signal, Start, Wait, walk
from schedc.ir.text_print import operation_lines, print_op
from schedc.ir.verify.verdict import Place


class Source:
    def __init__(self, program: Program, lines: tuple[int, ...] | None) -> None:
        self.ops = tuple(walk(program.body))
        self.lines = lines if lines is not None else operation_lines(program)
        self._counts = {semaphore.name: semaphore.count for semaphore in program.semaphores}

    def place(self, index: int, counters: tuple[tuple[str, int | str], ...] = (), device: int | None = None) -> Place:
        return Place(self.lines[index], print_op(self.ops[index]).removesuffix(" {"), counters, device, index)

    def any_start(self, semaphore: str) -> Place | None:
        """Some operation that adds to the semaphore."""
        for index, op in enumerate(self.ops):
            if isinstance(op, (Start, Signal)) and op.semaphore.name == semaphore:
                return self.place(index)
            if isinstance(op, RemoteStart) and semaphore in (op.sent.name, op.arrived.name):
                return self.place(index)
        return None

    def any_wait(self, semaphore: str) -> Place | None:
        """Some operation that takes from the semaphore."""
        for index, op in enumerate(self.ops):
            if isinstance(op, (Wait, Await)) and op.semaphore.name == semaphore:
                return self.place(index)
        return None

    def neighbour(self, of: int) -> Place | None:
        """The next compute or transfer in the text after an operation, else the one before it."""
        order = (*range(of + 1, len(self.ops)), *range(of - 1, -1, -1))
        found = (i for i in order if isinstance(self.ops[i], (Compute, Start, RemoteStart)))
        return next((self.place(i) for i in found), None)

    def target_of(self, place: Place | None) -> str:
        """The storage that the transfer of this place writes."""
        if place is None or place.index < 0:
            return ""
        op = self.ops[place.index]
        return op.target.storage if isinstance(op, (Start, RemoteStart)) else ""

    def semaphore_text(self, element: tuple[str, int]) -> str:
        name, index = element
        return f"{name}[{index}]" if self._counts[name] > 1 else name

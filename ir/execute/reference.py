"""The meaning of a program: the run in which every transfer happens at once and no two buffers share memory.

Of several devices the lowest that can go on takes the next step. What a device waits for does not
depend on the order, only on counts: each semaphore is taken from by its own device alone. So a device
that is stuck here is stuck under every timing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from schedc.ir.execute import steps as unrolled
from schedc.ir.execute.fault import Fault
from schedc.ir.execute.layout import Layout, lay_out
from schedc.ir.execute.steps import Give, Meet, Rows, Take
from schedc.ir.execute.trace import NEVER, Copy, Origin, Read, Step, Trace, Work, Write
from schedc.ir.execute.unroll import Unrolled, unroll
from schedc.ir.program import Program


def unfold(program: Program, scalars: Mapping[str, Sequence[int]], draw: int = 0) -> Trace:
    """The steps of every device and what they should read, for these values of the input scalars.

    `draw` is the seed of the scalars that computations set, which are others on every device.

    Raises ValueError for values that are not of the declared length or outside the declared range.
    """
    devices: list[Unrolled] = []
    for rank in range(program.devices):
        devices.append(unroll(program, scalars, rank, draw))
        if devices[-1].fault is not None and devices[-1].fault.kind == "too-long":
            break
    faults = [*_outside(program), *(device.fault for device in devices if device.fault)]
    places = tuple(device.places for device in devices)
    if faults:
        return Trace(program, (), places, (), (), [], [], tuple(faults))
    layout = lay_out(program, chain.from_iterable(device.steps for device in devices))
    reference = _Reference(program, devices, layout)
    reference.run()
    return Trace(
        program,
        tuple(reference.planned),
        places,
        tuple(reference.initial),
        tuple(reference.results()),
        layout.rows,
        reference.origins,
        tuple(reference.faults),
    )


def _outside(program: Program) -> Iterator[Fault]:
    pools = {pool.name: pool.rows for pool in program.pools}
    for buffer in program.buffers:
        if buffer.address is not None:
            first, end, rows = buffer.address, buffer.address + buffer.rows * buffer.slots, pools.get(buffer.pool, 0)
            if first < 0 or end > rows:
                what = f"buffer {buffer.name} has rows {first}..{end} of pool {buffer.pool}, which has {rows}"
                yield Fault("out-of-range", 0, what)


class _Reference:
    def __init__(self, program: Program, devices: list[Unrolled], layout: Layout) -> None:
        self.planned: list[list[Step]] = [[] for _ in devices]
        self.origins: list[Origin] = []
        self.faults: list[Fault] = []
        self.initial: list[list[int]] = []
        self._program, self._devices, self._layout = program, devices, layout
        self._memory: list[list[int]] = []
        self._tag = 0
        self._counts: list[dict[int, int]] = [defaultdict(int) for _ in devices]
        self._met = [0] * len(devices)
        for rank in range(len(devices)):
            self._begin(rank)

    def _begin(self, rank: int) -> None:
        shared, own = [NEVER] * self._layout.size, [NEVER] * self._layout.own_size
        for array in self._program.arrays:
            if array.role != "output":
                first, end, at = self._layout.cells[Rows(array.name, 0, array.rows)]
                tags = self._tags(end - first, Origin(self._tag, rank, 0, array.name))
                shared[first:end] = own[at : at + end - first] = tags
        self.initial.append(shared)
        self._memory.append(own)

    def _tags(self, count: int, origin: Origin) -> list[int]:
        self.origins.append(origin)
        tags = list(range(self._tag, self._tag + count))
        self._tag += count
        return tags

    def run(self) -> None:
        ranks = range(len(self._devices))
        while True:
            rank = next((rank for rank in ranks if self._can_go_on(rank)), None)
            if rank is None:
                break
            self._go_on(rank)
        for rank, device in enumerate(self._devices):
            at = len(self.planned[rank])
            if at < len(device.steps):
                self.faults.append(Fault("deadlock", at, self._stuck(rank, device.steps[at]), rank))

    def _can_go_on(self, rank: int) -> bool:
        steps, at = self._devices[rank].steps, len(self.planned[rank])
        if at == len(steps):
            return False
        match steps[at]:
            case Take(semaphore, amount):
                return self._counts[rank][semaphore] >= amount
            case Meet(number):
                self._met[rank] = number
                return min(self._met) >= number
            case _:
                return True

    def _go_on(self, rank: int) -> None:
        """Run a device until it must wait, or until one below it need no longer."""
        steps, planned, counts = self._devices[rank].steps, self.planned[rank], self._counts
        for at in range(len(planned), len(steps)):
            step = steps[at]
            match step:
                case unrolled.Work(reads, writes):
                    seen = [self._read(rank, rows) for rows in reads]
                    planned.append(Work(seen, [self._write(rank, rows) for rows in writes]))
                case unrolled.Copy():
                    planned.append(self._copy(rank, step))
                    if step.peer < rank:
                        return
                case Give(semaphore, amount, peer):
                    counts[peer][semaphore] += amount
                    planned.append(step)
                    if peer < rank:
                        return
                case Take(semaphore, amount):
                    if counts[rank][semaphore] < amount:
                        return
                    counts[rank][semaphore] -= amount
                    planned.append(step)
                case Meet():
                    if not self._can_go_on(rank):
                        return
                    planned.append(step)
                    if rank:
                        return

    def _read(self, rank: int, rows: Rows) -> Read:
        first, end, own = self._layout.cells[rows]
        seen = self._memory[rank][own : own + end - first]
        if NEVER in seen:
            row = rows.first + sum(self._layout.rows[first : first + seen.index(NEVER)])
            at = len(self.planned[rank])
            what = f"row {row} of {rows.storage}: {self._devices[rank].places[at]}"
            self.faults.append(Fault("never-written", at, what, rank))
        return Read(first, end, seen, rows)

    def _write(self, rank: int, rows: Rows) -> Write:
        first, end, own = self._layout.cells[rows]
        tags = self._tags(end - first, Origin(self._tag, rank, len(self.planned[rank])))
        self._memory[rank][own : own + end - first] = tags
        return Write(first, end, tags)

    def _copy(self, rank: int, step: unrolled.Copy) -> Copy:
        source = self._read(rank, step.source)
        first, end, own = self._layout.cells[step.target]
        self._memory[step.peer][own : own + end - first] = source.expected
        amount = step.source.end - step.source.first
        if step.sent is not None:
            self._counts[rank][step.sent] += amount
        self._counts[step.peer][step.arrived] += amount
        return Copy(source, first, amount, step.peer, step.sent, step.arrived)

    def _stuck(self, rank: int, step: unrolled.Step) -> str:
        place = self._devices[rank].places[len(self.planned[rank])]
        if isinstance(step, Take):
            return f"{self._counts[rank][step.semaphore]} of {step.amount}: {place}"
        return f"a device does not come to barrier {self._met[rank]}: {place}"

    def results(self) -> Iterator[list[Read]]:
        for memory in self._memory:
            found = []
            for array in self._program.arrays:
                rows = Rows(array.name, 0, array.rows)
                first, end, own = self._layout.cells[rows]
                found.append(Read(first, end, memory[own : own + end - first], rows))
            yield found

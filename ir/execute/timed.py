"""One timed run: devices take turns, transfers move when they like, every read is compared with the reference run."""

from __future__ import annotations

from schedc.ir.execute.fault import Fault
from schedc.ir.execute.steps import Give, Meet, Take
from schedc.ir.execute.timing import Timing
from schedc.ir.execute.trace import Copy, Read, Trace, Work
from schedc.ir.execute.transfers import Flight, Transfers


class TimedRun:
    def __init__(self, trace: Trace, timing: Timing) -> None:
        devices = len(trace.steps)
        self._trace, self._timing = trace, timing
        self._transfers = Transfers([list(tags) for tags in trace.memory], timing, self._wrong_read)
        self._at = [0] * devices
        """The next step of each device."""
        self._met = [0] * devices
        """The last barrier that each device came to."""
        self._ended = [False] * devices
        self._faults: list[Fault] = []

    def faults(self) -> list[Fault]:
        """Run to the end."""
        while not all(self._ended):
            self._advance(self._next())
        for device, results in enumerate(self._trace.results):
            for result in results:
                tags = self._transfers.memory[device][result.first : result.end]
                if tags != result.expected:
                    self._fault("wrong-result", device, self._difference(result, tags, 0))
        return self._faults

    def _next(self) -> int:
        """A device that can go on, after moving the transfers without which none can.

        There is one: counts do not depend on the order, and in the reference run no device was stuck.
        """
        while True:
            order = self._timing.order()
            for device in order:
                if self._can_go_on(device):
                    return device
                if self._timing.transfers_first:
                    while self._push(device):
                        if self._can_go_on(device):
                            return device
            if not any(self._push(device) for device in order):
                raise AssertionError("stuck, but not in the reference run")

    def _can_go_on(self, device: int) -> bool:
        at, steps = self._at[device], self._trace.steps[device]
        if at == len(steps):
            return not self._ended[device]
        step = steps[at]
        if type(step) is Take:
            return self._transfers.counts[device][step.semaphore] >= step.amount
        return type(step) is not Meet or self._meets(device, step)

    def _meets(self, device: int, step: Meet) -> bool:
        self._met[device] = step.number
        return min(self._met) >= step.number

    def _push(self, device: int) -> bool:
        if self._ended[device]:
            return False
        step = self._trace.steps[device][self._at[device]]
        return type(step) is Take and self._transfers.push(device, step.semaphore)

    def _advance(self, device: int) -> None:
        """Run a device until it must wait, its turn is over, or one of higher priority may go on."""
        transfers, steps = self._transfers, self._trace.steps[device]
        memory, counts, agenda = transfers.memory[device], transfers.counts[device], transfers.agenda
        transfers.woken.clear()
        yields = self._timing.is_strict and len(self._ended) > 1
        at = self._at[device]
        if at == len(steps):
            self._end(device)
        last = min(len(steps), at + self._timing.turn())
        while at < last:
            step = steps[at]
            if type(step) is Work:
                for first, end, expected, rows in step.reads:
                    if memory[first:end] != expected:
                        self._wrong_read(device, at, Read(first, end, expected, rows), memory[first:end], 0)
                for first, end, tags in step.writes:
                    memory[first:end] = tags
            elif type(step) is Take:
                if counts[step.semaphore] < step.amount:
                    break
                counts[step.semaphore] -= step.amount
            elif type(step) is Copy:
                self._copy(device, at, step)
            elif type(step) is Give:
                self._give(device, at, step)
            elif type(step) is Meet and self._meets(device, step):
                last = at + 1 if yields else last
            else:
                break
            at += 1
            transfers.clock += 1
            if agenda and agenda[0][0] <= transfers.clock:
                transfers.tick()
            if yields and not transfers.woken <= {device}:
                break
        self._at[device] = at

    def _copy(self, device: int, at: int, step: Copy) -> None:
        source, target, amount, peer, sent, arrived = step
        if peer != device:
            self._address(device, at, peer, "unfinished")
        self._transfers.launch(Flight(device, at, peer, amount, arrived, source, target, sent))

    def _give(self, device: int, at: int, step: Give) -> None:
        if step.peer == device:
            self._transfers.counts[device][step.semaphore] += step.amount
            return
        self._address(device, at, step.peer, "semaphore-left")
        self._transfers.launch(Flight(device, at, step.peer, step.amount, step.semaphore))

    def _address(self, device: int, at: int, peer: int, kind_at_end: str) -> None:
        if self._at[peer] == 0 and self._met[peer] == 0:
            what = f"device {peer} may not have begun: {self._trace.place(device, at)}"
            self._faults.append(Fault("peer-not-started", at, what, device))
        elif self._ended[peer]:
            self._fault(kind_at_end, peer, f"device {device} comes later: {self._trace.place(device, at)}")

    def _end(self, device: int) -> None:
        self._ended[device] = True
        for flight in self._transfers.expected(device):
            what = self._trace.place(flight.device, flight.step)
            self._fault("unfinished" if flight.source else "semaphore-left", device, f"not awaited: {what}")
        for number, count in sorted(self._transfers.counts[device].items()):
            if count:
                self._fault("semaphore-left", device, f"{self._trace.semaphore(number)} holds {count}")

    def _fault(self, kind: str, device: int, what: str) -> None:
        """A fault that shows when the device has ended."""
        self._faults.append(Fault(kind, len(self._trace.steps[device]), what, device))

    def _wrong_read(self, device: int, step: int, read: Read, tags: list[int], done: int) -> None:
        what = f"{self._difference(read, tags, done)}: {self._trace.place(device, step)}"
        self._faults.append(Fault("wrong-read", step, what, device))

    def _difference(self, read: Read, tags: list[int], done: int) -> str:
        """Which row of a read is wrong; `tags` were seen after the first `done` cells."""
        at = next(i for i, tag in enumerate(tags) if tag != read.expected[done + i])
        row, trace = self._trace.row(read, read.first + done + at), self._trace
        found, wanted = trace.origin(tags[at]), trace.origin(read.expected[done + at])
        return f"row {row} of {read.rows.storage} holds {found}, not {wanted}"

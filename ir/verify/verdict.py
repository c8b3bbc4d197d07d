"""What the proof answers: proven, or the list of reasons why not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """An operation: its line, its text, the loop counters when it ran, and the device if there are several."""

    line: int
    text: str
    counters: tuple[tuple[str, int | str], ...] = ()
    device: int | None = None
    index: int = -1
    """In the order of `program.walk`."""

    def __str__(self) -> str:
        at = "".join(f", {name}={value}" for name, value in self.counters)
        on = "" if self.device is None else f", device {self.device}"
        return f"`{self.text}` (line {self.line}{at}{on})"


@dataclass(frozen=True)
class Refusal:
    rule: str
    what: str
    """What happens, in one sentence that names the operations, the storage and its rows."""
    repair: str
    """One concrete change that would remove this refusal."""
    place: Place | None = None
    other: Place | None = None
    """The second operation of the pair, such as the start of the transfer that is in the way."""
    storage: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}. Repair: {self.repair}."


@dataclass(frozen=True)
class Statistics:
    operations: int = 0
    """Operations executed by the symbolic machine."""
    transfers: int = 0
    peak_transfers: int = 0
    peak_rows: int = 0
    """Most rows in flight at once."""
    skipped_iterations: int = 0
    """Loop iterations proven by induction instead of being executed."""

    def __add__(self, other: Statistics) -> Statistics:
        """Of two devices, or of two worlds: what was done adds up, of the peaks the higher counts."""
        return Statistics(
            self.operations + other.operations,
            self.transfers + other.transfers,
            max(self.peak_transfers, other.peak_transfers),
            max(self.peak_rows, other.peak_rows),
            self.skipped_iterations + other.skipped_iterations,
        )


@dataclass(frozen=True)
class Verdict:
    refusals: tuple[Refusal, ...]
    statistics: Statistics

    @property
    def proven(self) -> bool:
        return not self.refusals

    def __str__(self) -> str:
        return "\n".join(map(str, self.refusals)) or "proven"

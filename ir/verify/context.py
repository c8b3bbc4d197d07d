"""What the machines of all devices share: the program, what is known of its scalars, and the refusals."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from schedc.ir.program import BLOCKS, Await, Barrier, Op, Program, RemoteStart, Signal, Start, Wait
from schedc.ir.verify.linear import Atoms
from schedc.ir.verify.logic import Condition, Facts, Logic
from schedc.ir.verify.source import Source
from schedc.ir.verify.state import Counters
from schedc.ir.verify.verdict import Place, Refusal

_MOST_REFUSALS = 20
_MOST_OPERATIONS = 8_000_000
"""Executed in one proof, on all devices and in all worlds: about five minutes."""
_MOST_AFTER_REFUSAL = 20_000
"""Operations after a refusal in which another one has to come: where one iteration is refused, all are executed."""
_MOST_STEPS = 16_000_000
"""Of reasoning about conditions: some minutes. Steps of many rows over experts and split caches take some 100,000."""


class EnoughError(Exception):
    """As many refusals as anyone will read."""


class UndecidedError(Exception):
    """Whether devices communicate depends on a condition: the proof splits into the two worlds."""

    def __init__(self, condition: Condition, text: str) -> None:
        self.condition, self.text = condition, text


@dataclass
class Context:
    program: Program
    source: Source
    atoms: Atoms = field(default_factory=Atoms)
    refusals: dict[Hashable, Refusal] = field(default_factory=dict)
    conditions: dict[Condition, str] = field(default_factory=dict)
    """The text of conditions that were left open."""
    versions: dict[Hashable, int] = field(default_factory=dict)
    """Numbers of what is known of a scalar array: the same number for the same knowledge, on every device."""

    counters: dict[Counters, Counters] = field(default_factory=dict)
    """Those with which devices communicated, once each."""

    def __post_init__(self) -> None:
        program = self.program
        self.logic = Logic(self.atoms)
        self.devices = program.devices
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.arrays = {array.name: array for array in program.arrays}
        self.scalars = {declared.name: declared for declared in program.scalars}
        self.counts = {semaphore.name: semaphore.count for semaphore in program.semaphores}
        self.shared = frozenset(_shared_semaphores(self.source.ops))
        """Semaphores that other devices add to."""
        self._communicating: dict[int, bool] = {}
        self._executed = self._refused_at = 0
        read_outputs = {
            op.source.storage
            for op in self.source.ops
            if isinstance(op, (Start, RemoteStart)) and op.source.storage in self.arrays
            and self.arrays[op.source.storage].role == "output"
        }  # fmt: skip
        spaces = {b.name if b.address is None else f"pool {b.pool}" for b in program.buffers} | read_outputs
        self.spaces = tuple(sorted(spaces))
        """Spaces of which it is known what was written to them."""

    def communicates(self, op: Op) -> bool:
        """Whether the operation, or one within it, has to do with other devices."""
        if self.devices == 1:
            return False
        if (known := self._communicating.get(id(op))) is None:
            if isinstance(op, BLOCKS):
                known = any(self.communicates(inner) for inner in op.body)
            else:
                known = isinstance(op, (RemoteStart, Barrier)) or (
                    isinstance(op, (Start, Wait, Signal, Await)) and op.semaphore.name in self.shared
                )
            self._communicating[id(op)] = known
        return known

    def executed(self, operations: int, place: Callable[[], Place]) -> None:
        """Count operations that were executed. Raises EnoughError when there are too many, or too hard ones."""
        self._executed += operations
        if self.refusals and self._executed > self._refused_at + _MOST_AFTER_REFUSAL:
            raise EnoughError
        if self._executed > _MOST_OPERATIONS:
            self._give_up(f"has executed {_MOST_OPERATIONS} operations", "let fewer iterations communicate", place())
        if self.logic.steps > _MOST_STEPS:
            what = f"has taken {_MOST_STEPS} steps to decide which conditions hold together"
            self._give_up(what, "use fewer conditions on scalars, or let more operations share one", place())

    def _give_up(self, what: str, repair: str, place: Place) -> None:
        refusal = Refusal("too-long", f"the proof {what} and is at {place}", repair, place)
        self.refusals["too-long"] = refusal
        raise EnoughError

    def guard_text(self, guard: Facts) -> str:
        return " and ".join(self._condition_text(condition) for condition in guard) or "always"

    def _condition_text(self, condition: Condition) -> str:
        device = self.logic.device_of(condition) if self.devices > 1 else None
        where = "" if device is None else f" on device {device}"
        if condition in self.conditions:
            return self.conditions[condition] + where
        negated = self.logic.negation(condition)
        if isinstance(negated, Condition) and negated in self.conditions:
            return f"not ({self.conditions[negated]}){where}"
        return f"{self.atoms.text(condition.value)} {condition.kind} 0{where}"

    def refuse(self, refusal: Refusal, key: Hashable) -> None:
        """Record the first refusal of its kind and places. Raises EnoughError."""
        identity = self.identity(refusal, key)
        if identity not in self.refusals:
            self.refusals[identity] = refusal
            self._refused_at = self._executed
            if len(self.refusals) >= _MOST_REFUSALS:
                raise EnoughError

    @staticmethod
    def identity(refusal: Refusal, key: Hashable) -> Hashable:
        place, other = refusal.place, refusal.other
        return (refusal.rule, place and place.index, other and other.index, key)


def context_of(program: Program, lines: tuple[int, ...] | None) -> Context:
    return Context(program, Source(program, lines))


def _shared_semaphores(ops: tuple[Op, ...]) -> set[str]:
    names = {op.arrived.name for op in ops if isinstance(op, RemoteStart)}
    return names | {op.semaphore.name for op in ops if isinstance(op, Signal) and op.peer is not None}

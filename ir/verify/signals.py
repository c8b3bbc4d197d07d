"""Regular semaphores of one device: every await is satisfied, and nothing is left at the end.

Signals under a guard have been given only where it holds, so an await is decided per case of the
conditions that its own facts leave open, and so is the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from schedc.ir.verify.logic import Cases, Condition, Facts
from schedc.ir.verify.state import Element, Raised
from schedc.ir.verify.waits import holds

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine


def signal(machine: Machine, element: Element, amount: int) -> None:
    _raise(machine, element, amount, machine.facts)


def take(machine: Machine, element: Element, amount: int) -> None:
    """An await: the signals before it, in every case of their guards, add up to at least `amount`."""
    _await_case(machine, element, amount, machine.facts, Cases())
    _raise(machine, element, -amount, machine.facts)


def _await_case(machine: Machine, element: Element, amount: int, facts: Facts, cases: Cases) -> None:
    total = 0
    for entry in machine.state.raised.get(element, ()):
        present = holds(machine, entry.guard, facts)
        if isinstance(present, Condition) and cases.take():
            for case in machine.logic.split(present, facts):
                _await_case(machine, element, amount, case, cases)
            return
        # An undecided signal counts as absent, an undecided await as present.
        if present is True or (isinstance(present, Condition) and entry.amount < 0):
            total += entry.amount
    if total < amount:
        semaphore = machine.source.semaphore_text(element)
        other = machine.source.any_start(element[0])
        extra = facts[len(machine.facts) :]
        when = f" when {machine.context.guard_text(extra)}" if extra else ""
        machine.refuse(
            "wait-never-satisfied",
            f"{machine.place()} takes {amount} from {semaphore}, which holds {total}{when}: it hangs"
            + (f"; it is signalled by {other}" if other is not None else ""),
            f"signal {semaphore} with {amount - total} before line {machine.line()}, or remove the await",
            other,
            key=element[0],
        )
        _raise(machine, element, amount - total, machine.facts)


def _raise(machine: Machine, element: Element, amount: int, facts: Facts) -> None:
    entries = machine.state.raised.setdefault(element, [])
    for i, entry in enumerate(entries):
        if set(entry.guard) == set(facts):
            total = entry.amount + amount
            entries[i : i + 1] = [replace(entry, amount=total)] if total else []
            return
    entries.append(Raised(machine.index(), machine.now(), amount, facts))


def check_end(machine: Machine) -> None:
    """When the program ends every regular semaphore is zero."""
    for element, entries in machine.state.raised.items():
        left = _left(machine, entries, machine.facts, Cases())
        if left is None:
            continue
        amount, facts = left
        entry = next((entry for entry in entries if entry.amount > 0), entries[0])
        place = machine.place_of(entry.op, entry.counters)
        extra = facts[len(machine.facts) :]
        when = f" when {machine.context.guard_text(extra)}" if extra else ""
        semaphore = machine.source.semaphore_text(element)
        machine.refuse(
            "semaphore-left",
            f"{semaphore} holds {amount} when the program ends{when}, signalled by {place}",
            f"await {amount} more",
            key=element[0],
            at=place,
        )


def _left(machine: Machine, entries: list[Raised], facts: Facts, cases: Cases) -> tuple[int, Facts] | None:
    """What is left in some case, and the case."""
    total = 0
    for entry in entries:
        present = holds(machine, entry.guard, facts)
        if isinstance(present, Condition):
            if not cases.take():
                return entry.amount, (*facts, present)
            found = (_left(machine, entries, case, cases) for case in machine.logic.split(present, facts))
            return next((left for left in found if left is not None), None)
        total += entry.amount if present else 0
    return (total, facts) if total else None

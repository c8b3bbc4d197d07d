"""DMA semaphores: which transfers a wait forces to completion, and that every wait is satisfied.

A wait for n rows blocks until n rows beyond those already taken have arrived. It forces every
outstanding transfer of its semaphore exactly if n is all that is left; any less says nothing about
any one transfer. Transfers under a guard are outstanding only where it holds, so a wait is decided
per case of the conditions that its own facts leave open.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from schedc.ir.verify.hazards import written
from schedc.ir.verify.logic import Cases, Condition, Facts
from schedc.ir.verify.state import Element, Taken, Transfer

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine


def wait(machine: Machine, element: Element, rows: int) -> None:
    if element in machine.spoiled:
        for transfer in [t for t in machine.state.transfers if t.semaphore == element]:
            _complete(machine, transfer, machine.facts)
    else:
        _wait_case(machine, element, rows, machine.facts, Cases())


def _wait_case(machine: Machine, element: Element, rows: int, facts: Facts, cases: Cases) -> None:
    transfers: list[Transfer] = []
    taken: list[Taken] = []
    outstanding = [t for t in machine.state.transfers if t.semaphore == element]
    for entry in (*outstanding, *machine.state.taken.get(element, ())):
        present = holds(machine, entry.guard, facts)
        if isinstance(present, Condition):
            if not cases.take():
                _refuse_undecided(machine, element, outstanding)
                return
            for case in machine.logic.split(present, facts):
                _wait_case(machine, element, rows, case, cases)
            return
        if present:
            if isinstance(entry, Transfer):
                transfers.append(entry)
            else:
                taken.append(entry)
    left = sum(t.rows for t in transfers) - sum(t.rows for t in taken)
    if rows > left:
        _refuse_unsatisfied(machine, element, rows, left, facts, outstanding)
    elif rows < left:
        entry = Taken(machine.index(), machine.now(), rows, facts)
        machine.state.taken.setdefault(element, []).append(entry)
    else:
        for transfer in transfers:
            _complete(machine, transfer, facts)
        for entry in taken:
            entries = machine.state.taken[element]
            at = entries.index(entry)
            rest = [replace(entry, guard=guard) for guard in _remainders(machine, entry.guard, facts)]
            entries[at : at + 1] = rest


def holds(machine: Machine, guard: Facts, facts: Facts) -> bool | Condition:
    """Whether the guard holds under the facts, or the first of its conditions that they leave open."""
    undecided: Condition | None = None
    logic = machine.logic
    for condition in guard:
        if logic.implied(condition, facts):
            continue
        if logic.contradicted(condition, facts):
            return False
        undecided = undecided or condition
    return True if undecided is None else undecided


def _complete(machine: Machine, transfer: Transfer, facts: Facts) -> None:
    machine.ends(transfer, facts)
    rest = _remainders(machine, transfer.guard, facts)
    by = [replace(transfer, guard=guard, skipped_by=machine.index()) for guard in rest]
    machine.state.transfers.replace(transfer, by)
    stricter = tuple(c for c in facts if not machine.logic.implied(c, transfer.guard))
    written(machine, transfer.target, (*transfer.guard, *stricter), transfer.op)


def _remainders(machine: Machine, guard: Facts, facts: Facts) -> list[Facts]:
    """The guards under which something with `guard` exists although the facts do not all hold."""
    logic = machine.logic
    found: list[Facts] = []
    for condition in facts:
        if logic.implied(condition, guard):
            continue
        negated = logic.negation(condition)
        if isinstance(negated, Condition) and (sharper := logic.sharpened(negated, guard)) is not None:
            found.append((*guard, sharper))
        guard = (*guard, condition)
    return found


def _refuse_unsatisfied(
    machine: Machine, element: Element, rows: int, left: int, facts: Facts, outstanding: list[Transfer]
) -> None:
    semaphore = machine.source.semaphore_text(element)
    last = machine.last_start.get(element)
    extra = facts[len(machine.facts) :]
    if extra and last is not None:
        other, when = machine.place_of_transfer(last), machine.context.guard_text(extra)
        machine.refuse(
            "guard-mismatch",
            f"{machine.place()} waits for {rows} rows of {semaphore}, but when {when} only {left} "
            f"are outstanding; {other} starts its transfer into {machine.source.target_of(other)} only when "
            f"{machine.context.guard_text(last.guard)}",
            "put the start and the wait under the same condition",
            other,
            storage=machine.source.target_of(other),
            key=element[0],
        )
        return
    start = machine.place_of_transfer(last) if last is not None else machine.source.any_start(element[0])
    storage = machine.source.target_of(start)
    if last is not None:
        because = f"the last transfer on it was started by {start} into {storage}"
    elif start is not None:
        because = f"transfers on it are started by {start} into {storage}"
    else:
        because = "nothing starts a transfer on it"
        if (neighbour := machine.source.neighbour(machine.index())) is not None:
            start = neighbour
            because += f"; next to it is {neighbour}"
    machine.refuse(
        "wait-never-satisfied",
        f"{machine.place()} waits for {rows} rows of {semaphore}, of which {left} are outstanding: it hangs; {because}",
        f"start a transfer of {rows - left} rows that signals {semaphore} before line {machine.line()}, "
        "or remove the wait",
        start,
        storage=storage,
        key=element[0],
    )
    # Go on as if the wait had taken what there is, so that one fault is reported once.
    for transfer in outstanding:
        if holds(machine, transfer.guard, facts) is True:
            _complete(machine, transfer, facts)
    machine.state.taken.pop(element, None)


def _refuse_undecided(machine: Machine, element: Element, outstanding: list[Transfer]) -> None:
    other = machine.place_of_transfer(outstanding[0])
    semaphore = machine.source.semaphore_text(element)
    machine.refuse(
        "guard-mismatch",
        f"{machine.place()} waits on {semaphore}, where {len(outstanding)} transfers are outstanding under conditions "
        f"that it does not decide, such as that of {other}: {machine.context.guard_text(outstanding[0].guard)}",
        f"give each condition an element of {element[0]} of its own",
        other,
        storage=outstanding[0].target.storage,
        key=element[0],
    )


def _where(machine: Machine, transfer: Transfer) -> str:
    return " that is never" if transfer.device is None else f" of device {machine.rank} that is there never"


def check_end(machine: Machine) -> None:
    """When the program ends every transfer was awaited."""
    for transfer in machine.state.transfers:
        place = machine.place_of_transfer(transfer)
        semaphore = machine.source.semaphore_text(transfer.semaphore)
        taken = machine.state.taken.get(transfer.semaphore)
        other = machine.place_of(transfer.skipped_by, ()) if transfer.skipped_by is not None else None
        if other is not None:
            machine.refuse(
                "guard-mismatch",
                f"{place} starts a transfer into {transfer.target.storage} that {other} does not await when "
                f"{machine.context.guard_text(transfer.guard)}",
                "put the start and the wait under the same condition",
                other,
                storage=transfer.target.storage,
                key=transfer.op,
                at=place,
            )
        elif taken:
            outstanding = sum(t.rows for t in machine.state.transfers if t.semaphore == transfer.semaphore)
            rest = outstanding - sum(t.rows for t in taken)
            other = machine.place_of(taken[-1].op, taken[-1].counters)
            machine.refuse(
                "semaphore-left",
                f"{rest} rows are left on {semaphore} when the program ends: {place} into {transfer.target.storage} "
                f"is only partly awaited, last by {other}",
                f"wait for {rest} more rows of {semaphore}",
                other,
                storage=transfer.target.storage,
                key=transfer.semaphore[0],
                at=place,
            )
        else:
            wait_place = machine.source.any_wait(transfer.semaphore[0])
            machine.refuse(
                "transfer-never-awaited",
                f"{place} starts a transfer of {transfer.rows} rows into {transfer.target.storage}"
                f"{_where(machine, transfer)} awaited"
                + (f"; {semaphore} is awaited by {wait_place}" if wait_place is not None else ""),
                f"wait for {transfer.rows} rows of {semaphore}"
                + (f" on device {machine.rank}" if transfer.device is not None else "")
                + " before the program ends",
                wait_place,
                storage=transfer.target.storage,
                key=transfer.op,
                at=place,
            )

"""Conflicts between what the core or a new transfer touches and the transfers that are in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedc.ir.verify.contents import Layer
from schedc.ir.verify.distinct import apart
from schedc.ir.verify.linear import Lin, sub
from schedc.ir.verify.regions import range_text, rows_text
from schedc.ir.verify.state import Access, Transfer

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine


def check_read(machine: Machine, access: Access) -> None:
    """No transfer in flight writes these rows, and they hold what was written for this storage."""
    arriving = False
    space, low, high = access.space, access.low, access.high
    for transfer in machine.state.transfers.near(access):
        target = transfer.target
        near = target.space == space and target.low < high and low < target.high
        if near and _touch(machine, target, access, transfer):
            _refuse(machine, "read-while-arriving", transfer, "reads", access, "writing", transfer.target)
            arriving = True
    if not arriving:
        _check_contents(machine, access)


def check_role(machine: Machine, access: Access) -> None:
    """The storage may be written."""
    if machine.is_read_only(access.storage):
        role = machine.arrays[access.storage].role
        machine.refuse(
            "weight-written",
            f"{machine.place()} writes {rows_text(machine, access)}, which has role {role}",
            f"declare {access.storage} as state or output",
            storage=access.storage,
        )


def check_write(machine: Machine, access: Access) -> None:
    """No transfer in flight reads or writes these rows."""
    check_role(machine, access)
    space, low, high = access.space, access.low, access.high
    for transfer in machine.state.transfers.near(access):
        source, target = transfer.source, transfer.target
        near = target.space == space and target.low < high and low < target.high
        if near and _touch(machine, target, access, transfer):
            _refuse(machine, "write-while-arriving", transfer, "writes", access, "writing", target)
            continue
        near = source.space == space and source.low < high and low < source.high
        if near and _touch(machine, source, access, transfer):
            _refuse(machine, "overwrite-while-read", transfer, "writes", access, "reading", source)


def check_arrival(machine: Machine, arrival: Transfer) -> None:
    """What a peer may start now writes no row that a transfer in flight reads or writes."""
    target = arrival.target
    for transfer in machine.state.transfers.near(target):
        for rule, theirs, verb in (
            ("write-while-arriving", transfer.target, "writing"),
            ("overwrite-while-read", transfer.source, "reading"),
        ):
            near = theirs.space == target.space and theirs.low < target.high and target.low < theirs.high
            if near and _touch(machine, theirs, target, transfer):
                place, other = machine.place_of_transfer(arrival), machine.place_of_transfer(transfer)
                semaphore = machine.source.semaphore_text(transfer.semaphore)
                machine.refuse(
                    rule,
                    f"{place} may write {rows_text(machine, target)} on device {machine.rank} while the transfer of "
                    f"{other} may still be {verb} {rows_text(machine, theirs)}",
                    f"let device {arrival.device} start it only after device {machine.rank} has waited for "
                    f"{transfer.rows} rows of {semaphore} and told it so",
                    other,
                    storage=target.storage,
                    key=(machine.rank, transfer.op),
                    at=place,
                )
                break


def written(machine: Machine, access: Access, guard: tuple, op: int) -> None:
    """The rows now hold what `op` wrote for this storage, if the guard held."""
    contents = machine.state.contents.get(access.space)
    if contents is None:
        return
    layer = Layer(access.storage, guard, op)
    if type(access.base) is int:
        contents.write(access.base, access.base + access.rows, layer, machine.logic)
    else:
        contents.write_somewhere(access.lowest, access.highest, layer, machine.logic)


def overlap(machine: Machine, a: Access, b: Access, guard: tuple) -> bool:
    """Whether two accesses of one space may share a row, given the facts and the guard."""
    if a.high <= b.low or b.high <= a.low:
        return False
    distance = sub(b.base, a.base)
    if not isinstance(distance, Lin):
        return -b.rows < distance < a.rows
    key = (distance, a.rows, b.rows, machine.facts, guard)
    if (known := machine.overlaps.get(key)) is None:
        facts = machine.with_facts(guard)
        proves = machine.logic.proves
        known = not (
            proves(sub(distance, a.rows), facts)
            or proves(sub(-b.rows, distance), facts)
            or apart(machine, distance, a.rows, b.rows, facts)
        )
        machine.overlaps[key] = known
    return known


def _touch(machine: Machine, theirs: Access, access: Access, transfer: Transfer) -> bool:
    if not overlap(machine, theirs, access, transfer.guard):
        return False
    return not machine.logic.excluded(transfer.guard, machine.facts)


def _refuse(
    machine: Machine,
    rule: str,
    transfer: Transfer,
    verb: str,
    access: Access,
    may: str,
    theirs: Access,
) -> None:
    taken = machine.state.taken.get(transfer.semaphore, ())
    ahead = machine.is_ahead(transfer)
    rule = "partial-wait-unproven" if taken and not ahead else rule
    if machine.has_refused(rule, transfer.op):
        return
    other = machine.place_of_transfer(transfer)
    semaphore = machine.source.semaphore_text(transfer.semaphore)
    mine, others = rows_text(machine, access), rows_text(machine, theirs)
    same = "them" if mine == others else others
    what = f"{machine.place()} {verb} {mine} while the transfer of {other} may still be {may} {same}"
    what += machine.distance(transfer.counters)
    repair = f"wait for {transfer.rows} rows of {semaphore} before line {machine.line()}"
    if ahead:
        repair = (
            f"let device {transfer.device} start it only after a signal of device {machine.rank} that follows line "
            f"{machine.line()}, or give {theirs.storage} another slot"
        )
    elif taken:
        wait = machine.place_of(taken[-1].op, taken[-1].counters)
        outstanding = sum(t.rows for t in machine.state.transfers if t.semaphore == transfer.semaphore)
        what += (
            f"; {wait} took {sum(t.rows for t in taken)} of the {outstanding} rows outstanding on {semaphore}, "
            "which does not say which transfer has completed"
        )
        repair = f"give the transfer a semaphore of its own, or wait for all {outstanding} rows"
    machine.refuse(rule, what, repair, other, storage=theirs.storage, key=transfer.op)


def _check_contents(machine: Machine, access: Access) -> None:
    contents = machine.state.contents.get(access.space)
    if contents is None:
        return
    dynamic = type(access.base) is not int
    fault = contents.fault(access.lowest, access.highest, access.storage, machine.facts, machine.logic)
    if fault is None:
        return
    rows = range_text(access.storage, fault.row - access.first, fault.end - access.first)
    reads = f"{machine.place()} reads {rows}" if not dynamic else f"{machine.place()} may read {rows}"
    if fault.by is not None:
        other = machine.place_of(fault.by.op, ())
        machine.refuse(
            "clobbered",
            f"{reads}, but {other} last wrote those rows for {fault.by.owner}",
            f"keep {access.storage} and {fault.by.owner} at different rows while both are live",
            other,
            storage=access.storage,
            key=fault.by.op,
        )
    elif fault.guarded is not None:
        other = machine.place_of(fault.guarded.op, ())
        machine.refuse(
            "guard-mismatch",
            f"{reads}, which {other} writes only when {machine.context.guard_text(fault.guarded.guard)}",
            f"read under the same condition, or initialise {access.storage} before",
            other,
            storage=access.storage,
            key=fault.guarded.op,
        )
    else:
        machine.refuse(
            "read-before-write",
            f"{reads}, which nothing has written",
            f"write {access.storage} before line {machine.line()}",
            storage=access.storage,
            key=access.storage,
        )
    contents.write(fault.row, fault.end, Layer(access.storage, (), machine.index()), machine.logic)


def check_own_overlap(machine: Machine, source: Access, target: Access) -> None:
    if source.space == target.space and overlap(machine, source, target, ()):
        machine.refuse(
            "overwrite-while-read",
            f"{machine.place()} copies {rows_text(machine, source)} onto {rows_text(machine, target)}, "
            "which may overlap",
            "copy to rows that the source does not have",
            storage=target.storage,
        )


def check_operands(machine: Machine, reads: list[Access], writes: list[Access]) -> None:
    """A result shares no row with another operand, unless it is computed in place, from exactly the same rows."""
    for i, write in enumerate(writes):
        for number, other in enumerate((*reads, *writes[i + 1 :])):
            if other is write or other.space != write.space:
                continue
            same = other.base == write.base and other.rows == write.rows and other.storage == write.storage
            if same and number < len(reads):
                continue
            if overlap(machine, write, other, ()):
                machine.refuse(
                    "operand-overlap",
                    f"{machine.place()} writes {rows_text(machine, write)} while it uses {rows_text(machine, other)}, "
                    "which may overlap",
                    f"give {write.storage} and {other.storage} different rows",
                    storage=write.storage,
                    key=other.storage,
                )

"""From a region to the rows it touches: slot and offset inside their bounds, dynamic offsets aligned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from schedc.ir.program import ROW_BYTES, Region
from schedc.ir.verify.expressions import compile_expr, is_dynamic
from schedc.ir.verify.linear import Lin, Value, add, scale, sub
from schedc.ir.verify.state import Access

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine

TILE_ROWS = 8
"""Dynamic offsets of vector loads and stores, and of transfers of several rows, are multiples of this."""

Resolve = Callable[[], Access | None]


def compile_region(machine: Machine, region: Region, transfer: bool, traced: frozenset[str]) -> Resolve:
    """A function that gives the rows of the region now, or None after refusing it."""
    offset, slot = compile_expr(machine, region.offset), compile_expr(machine, region.slot)
    storage, rows, reach = region.storage, region.rows, machine.logic.reach
    buffer = machine.buffers.get(storage)
    if buffer is None:
        array = machine.arrays[storage]
        size, slots, first, space, aligned = array.rows, 1, 0, array.name, True
    else:
        size, slots = buffer.rows, buffer.slots
        first, space = (0, buffer.name) if buffer.address is None else (buffer.address, f"pool {buffer.pool}")
        dynamic = is_dynamic(region.offset, traced) or is_dynamic(region.slot, traced)
        aligned = not dynamic or (transfer and rows == 1)

    resolved, number = machine.resolved, next(machine.region_numbers)

    def resolve() -> Access | None:
        at, which = offset(), slot()
        key = (number, at, which) if type(at) is int and type(which) is int else (number, at, which, machine.facts)
        if (known := resolved.get(key)) is not None:
            return known
        if not (_within(machine, which, slots - 1) and _within(machine, at, size - rows)):
            _refuse_range(machine, region, at, which, size, slots)
            return None
        base = add(add(first, scale(which, size)), at)
        if not aligned and not _multiple(base):
            machine.refuse(
                "misaligned",
                f"{machine.place()} accesses {storage} at dynamic row {machine.atoms.text(sub(base, first))}"
                + (f" (pool row {machine.atoms.text(base)})" if first else "")
                + f", which is not a multiple of {TILE_ROWS}",
                f"make its slot, offset and address multiples of {TILE_ROWS} rows",
                storage=storage,
            )
        low, high = reach(base)
        if type(base) is int:
            lowest, highest = base, base + rows
        elif type(which) is int:
            lowest, highest = first + which * size, first + (which + 1) * size
        else:
            lowest, highest = first, first + slots * size
        access = resolved[key] = Access(space, storage, base, rows, first, lowest, highest, low, high + rows)
        return access

    return resolve


def _within(machine: Machine, value: Value, high: int) -> bool:
    if type(value) is int:
        return 0 <= value <= high
    logic, facts = machine.logic, machine.facts
    return logic.proves(value, facts) and logic.proves(sub(high, value), facts)


def _multiple(base: Value) -> bool:
    if type(base) is int:
        return base % TILE_ROWS == 0
    assert isinstance(base, Lin)
    return base.const % TILE_ROWS == 0 and all(c % TILE_ROWS == 0 for _, c in base.terms)


def _refuse_range(machine: Machine, region: Region, at: Value, which: Value, size: int, slots: int) -> None:
    text, interval = machine.atoms.text, machine.atoms.interval
    if not _within(machine, which, slots - 1):
        low, high = interval(which)
        machine.refuse(
            "out-of-range",
            f"{machine.place()} uses slot {text(which)} of {region.storage}{_may_be(which, low, high)}, "
            f"which has slots 0..{slots - 1}",
            f"keep the slot within 0..{slots - 1}",
            storage=region.storage,
        )
        return
    low, high = interval(at)
    machine.refuse(
        "out-of-range",
        f"{machine.place()} accesses {region.rows} rows from row {text(at)} of {region.storage}"
        f"{_may_be(at, low, high)}, which has rows 0..{size - 1}",
        f"keep the offset within 0..{size - region.rows}"
        if region.rows <= size
        else f"give {region.storage} at least {region.rows} rows",
        storage=region.storage,
    )


def _may_be(value: Value, low: int, high: int) -> str:
    return "" if type(value) is int else f" (may be {low}..{high})"


def rows_text(machine: Machine, access: Access) -> str:
    """`rows 8..15 (bytes 4096..8191) of tile`, counted from the storage's first row."""
    start = sub(access.base, access.first)
    if type(start) is not int:
        size = access.rows * ROW_BYTES
        return f"{access.rows} rows ({size} bytes) from row {machine.atoms.text(start)} of {access.storage}"
    return range_text(access.storage, start, start + access.rows)


def range_text(storage: str, low: int, high: int) -> str:
    """Rows low..high-1 of a storage, with their bytes."""
    return f"rows {low}..{high - 1} (bytes {low * ROW_BYTES}..{high * ROW_BYTES - 1}) of {storage}"

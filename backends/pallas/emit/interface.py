"""The kernel's arguments and results, in order, as its callers see them."""

from __future__ import annotations

from schedc.backends.pallas.emit.body import INDENT, wrapped
from schedc.ir.program import Array, Program, Scalars


def tables(program: Program) -> list[Scalars]:
    return [scalars for scalars in program.scalars if scalars.role == "table"]


def inputs(program: Program) -> list[Scalars]:
    return [scalars for scalars in program.scalars if scalars.role == "input"]


def states(program: Program) -> list[Array]:
    return [array for array in program.arrays if array.role == "state"]


def outputs(program: Program) -> list[Array]:
    return [array for array in program.arrays if array.role == "output"]


def arguments(program: Program) -> list[Array]:
    """The arrays a caller gives: weights and inputs, then states."""
    return [array for array in program.arrays if array.role in ("weight", "input")] + states(program)


def interface_lines(program: Program) -> list[str]:
    lines = [f"NAME = {program.name!r}"]
    if program.devices > 1:
        lines += [f"DEVICES = {program.devices}", "# Every device has the same number of rows of an array, in order."]
    lines += ["ARGUMENTS = {"]
    lines += [f"    {s.name!r}: ('int32', ({s.length},))," for s in inputs(program)]
    lines += [f"    {a.name!r}: ('int32', ({program.devices * a.rows}, 128))," for a in arguments(program)]
    state_names = tuple(array.name for array in states(program))
    output_names = tuple(array.name for array in outputs(program))
    lines += ["}", f"STATE = {state_names!r}", f"OUTPUTS = {state_names + output_names!r}"]
    return lines + _table_lines(program)


def _table_lines(program: Program) -> list[str]:
    lines = []
    for table in tables(program):
        values = [str(value) for value in table.values]
        rows = wrapped(f"{table.name!r}: (", values + [""] * (len(values) == 1), INDENT)
        lines += [*rows[:-1], f"{rows[-1]},"]
    return ["TABLES = {", *lines, "}"] if lines else []

"""Addresses for the buffers of a program: greedy first, exact search where greedy wastes rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from schedc.ir.allocate.clash import clash_set
from schedc.ir.allocate.problem import Item, Problem
from schedc.ir.allocate.refusal import Clash, DoesNotFit, refusal
from schedc.ir.allocate.share import Packing, improved, share
from schedc.ir.allocate.validate import validate
from schedc.ir.errors import IrError
from schedc.ir.live import LiveRange, live_ranges
from schedc.ir.program import Buffer, Program

__all__ = ["Clash", "DoesNotFit", "allocate", "fits", "pool_problems"]

_PATIENCE = 2.0
"""Seconds of exact search a pool when the greedy packing would do, but is not near the best."""


def allocate(program: Program, capacity_rows: int, seconds: float = 10.0) -> Program:
    """The program with an address for every buffer and the rows of every pool.

    `capacity_rows` is what all pools together may take; `seconds` bounds the exact search. Addresses that buffers
    already have are kept. Raises `DoesNotFit`, and `IrError` if such addresses cannot be kept.
    """
    problems = pool_problems(program)
    for pool, problem in problems.items():
        _check_fixed(pool, problem)
    shared = share(problems, capacity_rows, seconds)
    if shared.kind != "fits":
        clash = clash_set(problems, capacity_rows, shared.kind == "cannot-fit", seconds)
        raise refusal(program, problems, shared, clash, capacity_rows)
    packings = {pool: improved(packing, min(_PATIENCE, seconds)) for pool, packing in shared.packings.items()}
    for pool, problem in problems.items():
        violations = validate(problem, packings[pool].addresses, packings[pool].rows)
        if violations:
            raise AssertionError(f"invalid packing of pool {pool}: {', '.join(map(str, violations))}")
    return _addressed(program, packings)


def fits(program: Program, capacity_rows: int, seconds: float = 10.0) -> bool:
    """Whether a packing within the capacity was found, without asking what clashes if there is none."""
    return share(pool_problems(program), capacity_rows, seconds).kind == "fits"


def pool_problems(program: Program) -> dict[str, Problem]:
    """The packing problem of every pool; times are operations in text order."""
    ranges = {live.buffer: live for live in live_ranges(program)}
    return {
        pool.name: Problem(
            tuple(_item(buffer, ranges.get(buffer.name)) for buffer in program.buffers if buffer.pool == pool.name)
        )
        for pool in program.pools
    }


def _item(buffer: Buffer, live: LiveRange | None) -> Item:
    spans = live.spans if live is not None else ((0, 1),)
    return Item(buffer.name, spans, buffer.rows * buffer.slots, buffer.align, buffer.address)


def _check_fixed(pool: str, problem: Problem) -> None:
    fixed = Problem(tuple(item for item in problem.items if item.fixed is not None))
    addresses = {item.name: item.fixed for item in fixed.items if item.fixed is not None}
    violations = validate(fixed, addresses, fixed.height(addresses))
    if violations:
        raise IrError(f"the addresses given in pool {pool} cannot be kept: {', '.join(map(str, violations))}")


def _addressed(program: Program, packings: Mapping[str, Packing]) -> Program:
    return replace(
        program,
        pools=tuple(replace(pool, rows=packings[pool.name].rows) for pool in program.pools),
        buffers=tuple(
            replace(buffer, address=packings[buffer.pool].addresses[buffer.name]) for buffer in program.buffers
        ),
    )

"""Addresses for the buffers of a program: greedy first, exact search where greedy wastes rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from schedc.ir.allocate.exact import exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Item, Problem, aligned
from schedc.ir.allocate.validate import validate
from schedc.ir.errors import IrError
from schedc.ir.live import LiveRange, live_ranges
from schedc.ir.program import ROW_BYTES, Buffer, Program, walk
from schedc.ir.text_print import print_op

__all__ = ["Clash", "DoesNotFit", "allocate", "pool_problems"]

_PATIENCE = 0.25
"""Seconds of exact search a pool when the greedy packing would do, but is not the best."""


@dataclass(frozen=True)
class Clash:
    """A buffer of a set that cannot be in VMEM together."""

    buffer: str
    pool: str
    bytes: int


class DoesNotFit(IrError):  # noqa: N818 - the name says what happened
    """No packing within the capacity. `proven` is False if the search ran out of time."""

    def __init__(self, clashes: tuple[Clash, ...], needed: int, capacity: int, where: str, proven: bool) -> None:
        self.clashes, self.where, self.proven = clashes, where, proven
        self.needed_bytes, self.capacity_bytes, self.missing_bytes = needed, capacity, needed - capacity
        names = ", ".join(f"{clash.buffer} ({clash.bytes})" for clash in clashes)
        if proven:
            why = f"{needed} bytes are live at {where}; the smallest set that cannot be there together is {names}"
        else:
            why = f"the best packing found takes {needed} bytes; live at {where} are {names}"
        super().__init__(f"{needed - capacity} bytes too many for the {capacity} bytes of the pools: {why}")


def allocate(program: Program, capacity_rows: int, seconds: float = 10.0) -> Program:
    """The program with an address for every buffer and the rows of every pool.

    `capacity_rows` is what all pools together may take; `seconds` bounds the exact search.
    Addresses that buffers already have are kept. Raises `DoesNotFit`.
    """
    problems = pool_problems(program)
    packings = {pool: _pack(problem, None, _PATIENCE) for pool, problem in problems.items()}
    total = sum(problems[pool].height(packings[pool]) for pool in problems)
    if total > capacity_rows:
        lower = {pool: problem.peak()[0] for pool, problem in problems.items()}
        if sum(lower.values()) <= capacity_rows:
            for pool, problem in problems.items():
                others = sum(problems[other].height(packings[other]) for other in problems if other != pool)
                target = max(capacity_rows - others, lower[pool])
                packings[pool] = _pack(problem, target, seconds / len(problems))
            total = sum(problems[pool].height(packings[pool]) for pool in problems)
        if total > capacity_rows:
            raise _refusal(program, problems, sum(lower.values()), total, capacity_rows)
    for pool, problem in problems.items():
        violations = validate(problem, packings[pool], problem.height(packings[pool]))
        if violations:
            raise AssertionError(f"invalid packing of pool {pool}: {violations}")
    return _addressed(program, problems, packings)


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
    first, last = (live.first, live.last) if live is not None else (0, 0)
    return Item(buffer.name, first, last + 1, buffer.rows * buffer.slots, buffer.align, buffer.address)


def _pack(problem: Problem, height: int | None, seconds: float) -> dict[str, int]:
    """The greedy packing, or an exact one if that is higher than `height` (or than the peak of live rows)."""
    packing = greedy(problem)
    target = problem.peak()[0] if height is None else height
    if problem.height(packing) > target:
        answer = exact(problem, target, seconds)
        if answer.kind == "fits":
            return answer.addresses
    return packing


def _addressed(program: Program, problems: dict[str, Problem], packings: dict[str, dict[str, int]]) -> Program:
    heights = {pool: aligned(problem.height(packings[pool]), 8) for pool, problem in problems.items()}
    return replace(
        program,
        pools=tuple(replace(pool, rows=heights[pool.name]) for pool in program.pools),
        buffers=tuple(replace(buffer, address=packings[buffer.pool][buffer.name]) for buffer in program.buffers),
    )


def _refusal(program: Program, problems: dict[str, Problem], lower: int, total: int, capacity: int) -> DoesNotFit:
    """The buffers at each pool's peak, less those without which the rest still does not fit."""
    proven = lower > capacity
    clashing: list[tuple[str, Item]] = []
    moments: list[int] = []
    for pool, problem in problems.items():
        _, when = problem.peak()
        if problem.items:
            moments.append(when)
        clashing += [(pool, item) for item in problem.live_at(when)]
    if proven:
        for pair in sorted(clashing, key=lambda pair: pair[1].size):
            if sum(item.size for _, item in clashing) - pair[1].size > capacity:
                clashing.remove(pair)
    operations = list(walk(program.body))
    where = " and ".join(f"`{print_op(operations[i]).removesuffix(' {')}`" for i in sorted(set(moments))) or "the start"
    clashes = tuple(Clash(item.name, pool, item.size * ROW_BYTES) for pool, item in clashing)
    needed = lower if proven else total
    return DoesNotFit(clashes, needed * ROW_BYTES, capacity * ROW_BYTES, where, proven)

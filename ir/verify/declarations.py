"""What can be checked without running the program: names, sizes, addresses, and the chip's capacity."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.expr import Counter, Element, Expr, leaves
from schedc.ir.program import (
    ROW_BYTES,
    Await,
    Compute,
    Loop,
    Op,
    Program,
    Region,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Wait,
    When,
)
from schedc.ir.text_print import operation_lines, print_op
from schedc.ir.verify.limits import Limits
from schedc.ir.verify.verdict import Place, Refusal


def check_declarations(program: Program, limits: Limits) -> list[Refusal]:
    return [*_unique(program), *_addresses(program), *_capacity(program, limits)]


def _unique(program: Program) -> Iterator[Refusal]:
    storage = [*(buffer.name for buffer in program.buffers), *(array.name for array in program.arrays)]
    for names in (
        [pool.name for pool in program.pools],
        storage,
        [scalars.name for scalars in program.scalars],
        [semaphore.name for semaphore in program.semaphores],
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Refusal("duplicate-name", f"{name} is declared twice", "rename one of the two")


def _addresses(program: Program) -> Iterator[Refusal]:
    pools = {pool.name: pool for pool in program.pools}
    for buffer in program.buffers:
        name = buffer.name
        if buffer.pool not in pools:
            yield Refusal("undeclared", f"buffer {name} is in pool {buffer.pool}, which is not declared",
                          f"declare pool {buffer.pool}", storage=name)  # fmt: skip
        elif buffer.address is not None:
            end = buffer.address + buffer.slots * buffer.rows
            if buffer.address < 0 or end > pools[buffer.pool].rows:
                yield Refusal(
                    "out-of-range",
                    f"buffer {name} takes rows {buffer.address}..{end - 1} of pool {buffer.pool}, "
                    f"which has {pools[buffer.pool].rows}",
                    f"give pool {buffer.pool} at least {end} rows",
                    storage=name,
                )
            if buffer.address % max(buffer.align, 1):
                yield Refusal(
                    "misaligned",
                    f"buffer {name} is at row {buffer.address} of pool {buffer.pool}, not a multiple of {buffer.align}",
                    f"move it to row {-(-buffer.address // buffer.align) * buffer.align}",
                    storage=name,
                )


def _capacity(program: Program, limits: Limits) -> Iterator[Refusal]:
    rows = {pool.name: pool.rows for pool in program.pools}
    vmem = sum(rows.values()) * ROW_BYTES + limits.scratch_bytes
    if vmem > limits.vmem_bytes:
        parts = " + ".join(f"{name} {count * ROW_BYTES}" for name, count in rows.items())
        yield Refusal(
            "capacity",
            f"VMEM needs {vmem} bytes ({parts} + scratch {limits.scratch_bytes}) of {limits.vmem_bytes}, "
            f"{vmem - limits.vmem_bytes} too many",
            f"take {-(-(vmem - limits.vmem_bytes) // ROW_BYTES)} rows out of the pools",
        )
    granule = limits.smem_granule
    smem = sum(-(-scalars.length * 4 // granule) * granule for scalars in program.scalars)
    if smem > limits.smem_bytes:
        yield Refusal(
            "capacity",
            f"SMEM needs {smem} bytes of {limits.smem_bytes}, {smem - limits.smem_bytes} too many",
            "shorten the scalar arrays",
        )
    semaphores = sum(semaphore.count for semaphore in program.semaphores)
    if semaphores > limits.semaphores:
        yield Refusal(
            "capacity",
            f"{semaphores} semaphores are declared, the chip has {limits.semaphores}",
            f"share {semaphores - limits.semaphores} of them",
        )


def check_names(program: Program) -> list[Refusal]:
    """Every name that an operation uses is declared and of the right kind; counters belong to an enclosing loop."""
    return list(_Names(program).check(program.body, frozenset()))


class _Names:
    def __init__(self, program: Program) -> None:
        self._buffers = {buffer.name for buffer in program.buffers}
        self._arrays = {array.name for array in program.arrays}
        self._scalars = {scalars.name for scalars in program.scalars}
        self._kinds = {semaphore.name: semaphore.kind for semaphore in program.semaphores}
        self._lines = iter(operation_lines(program))

    def check(self, ops: tuple[Op, ...], counters: frozenset[str]) -> Iterator[Refusal]:
        for op in ops:
            line = next(self._lines)
            for what, repair in self._op(op, counters):
                rule = "undeclared" if "declare" in what or "counter" in what else "malformed"
                place = Place(line, print_op(op).removesuffix(" {"))
                yield Refusal(rule, f"{place} {what}", repair, place)
            if hasattr(op, "body"):
                inner = counters | {op.counter} if isinstance(op, Loop) else counters
                yield from self.check(op.body, inner)

    def _op(self, op: Op, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        match op:
            case Start(source, target, semaphore):
                yield from self._region(source, counters)
                yield from self._region(target, counters)
                yield from self._semaphore(semaphore, "dma", counters)
                if source.rows != target.rows:
                    yield (
                        f"copies {source.rows} rows to {target.rows} rows",
                        f"make both regions {max(source.rows, target.rows)} rows",
                    )
            case Wait(semaphore):
                yield from self._semaphore(semaphore, "dma", counters)
            case Signal(semaphore) | Await(semaphore):
                yield from self._semaphore(semaphore, "regular", counters)
            case Compute():
                for operand in op.operands:
                    yield from self._region(operand.region, counters)
                    if operand.region.storage in self._arrays:
                        yield (
                            f"uses HBM array {operand.region.storage} as operand {operand.name}",
                            "copy it to a buffer with a transfer",
                        )
                for _, value in op.scalars:
                    yield from self._expr(value, counters)
            case SetScalar(array, index, value):
                if array not in self._scalars:
                    yield f"sets {array}, which is not declared", f"declare smem {array}"
                yield from self._expr(index, counters)
                yield from self._expr(value, counters)
            case Loop(counter, trips):
                if counter in counters:
                    yield f"reuses the counter of an enclosing loop, {counter}", "rename the counter"
                yield from self._expr(trips, counters)
            case When(conditions):
                for compare in conditions:
                    yield from self._expr(compare.left, counters)
                    yield from self._expr(compare.right, counters)

    def _region(self, region: Region, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        if region.storage not in self._buffers and region.storage not in self._arrays:
            yield f"uses {region.storage}, which is not declared", f"declare buffer or hbm {region.storage}"
        if region.rows <= 0:
            yield f"uses {region.rows} rows of {region.storage}", "use at least one row"
        yield from self._expr(region.offset, counters)
        yield from self._expr(region.slot, counters)

    def _semaphore(self, ref: SemaphoreRef, kind: str, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        if ref.name not in self._kinds:
            yield f"uses semaphore {ref.name}, which is not declared", f"declare semaphore {ref.name}[1] {kind}"
        elif self._kinds[ref.name] != kind:
            yield f"uses {self._kinds[ref.name]} semaphore {ref.name} as {kind}", f"declare a {kind} semaphore for it"
        yield from self._expr(ref.index, counters)

    def _expr(self, expr: Expr, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        for leaf in leaves(expr):
            if isinstance(leaf, Counter) and leaf.name not in counters:
                yield f"uses counter {leaf.name}, which no enclosing loop has", f"put it in a loop over {leaf.name}"
            if isinstance(leaf, Element) and leaf.array not in self._scalars:
                yield f"reads {leaf.array}, which is not declared", f"declare smem {leaf.array}"

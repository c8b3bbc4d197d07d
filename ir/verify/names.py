"""What can be checked of operations without running them: declared names, their kinds, and sizes that agree."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.expr import Counter, Element, Expr, leaves
from schedc.ir.program import (
    BLOCKS,
    Await,
    Compute,
    Loop,
    Op,
    Program,
    Region,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)
from schedc.ir.text_print import operation_lines, print_op
from schedc.ir.verify.verdict import Place, Refusal


def check_names(program: Program, lines: tuple[int, ...] | None = None) -> list[Refusal]:
    """Every name that an operation uses is declared and of the right kind; counters belong to an enclosing loop."""
    return [*_sizes(program), *_Names(program, lines or operation_lines(program)).check(program.body, frozenset())]


def _sizes(program: Program) -> Iterator[Refusal]:
    if program.devices < 1:
        yield Refusal("malformed", f"the program is for {program.devices} devices", "declare at least one")
    for scalars in program.scalars:
        if scalars.role == "table" and len(scalars.values) != scalars.length:
            yield Refusal(
                "malformed",
                f"table {scalars.name} has {len(scalars.values)} values and length {scalars.length}",
                f"give it {scalars.length} values",
                storage=scalars.name,
            )


class _Names:
    def __init__(self, program: Program, lines: tuple[int, ...]) -> None:
        self._devices = program.devices
        self._buffers = {buffer.name for buffer in program.buffers}
        self._arrays = {array.name for array in program.arrays}
        self._scalars = {scalars.name for scalars in program.scalars}
        self._kinds = {semaphore.name: semaphore.kind for semaphore in program.semaphores}
        self._lines = lines
        self._next = 0

    def check(self, ops: tuple[Op, ...], counters: frozenset[str]) -> Iterator[Refusal]:
        for op in ops:
            index, self._next = self._next, self._next + 1
            for what, repair in self._op(op, counters):
                rule = "undeclared" if "declare" in what or "counter" in what else "malformed"
                place = Place(self._lines[index], print_op(op).removesuffix(" {"), index=index)
                yield Refusal(rule, f"{place} {what}", repair, place)
            if isinstance(op, BLOCKS):
                inner = counters | {op.counter} if isinstance(op, Loop) else counters
                yield from self.check(op.body, inner)

    def _op(self, op: Op, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        match op:
            case Start(source, target, semaphore):
                yield from self._copy(source, target, counters)
                yield from self._semaphore(semaphore, "dma", counters)
            case RemoteStart(source, target, peer, sent, arrived):
                yield from self._copy(source, target, counters)
                yield from self._semaphore(sent, "dma", counters)
                yield from self._semaphore(arrived, "dma", counters)
                yield from self._peer(peer, counters)
            case Wait(semaphore, rows):
                yield from self._semaphore(semaphore, "dma", counters)
                if rows < 1:
                    yield f"waits for {rows} rows", "wait for at least one row"
            case Signal(semaphore, amount, peer):
                yield from self._semaphore(semaphore, "regular", counters)
                if amount < 1:
                    yield f"adds {amount}", "add at least one"
                if peer is not None:
                    yield from self._peer(peer, counters)
            case Await(semaphore, amount):
                yield from self._semaphore(semaphore, "regular", counters)
                if amount < 1:
                    yield f"takes {amount}", "take at least one"
            case Switch(selector, cases):
                yield from self._expr(selector, counters)
                values = [case.value for case in cases]
                for number in sorted({number for number in values if values.count(number) > 1}):
                    yield f"has case {number} twice", "give each case a value of its own"
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
                yield from self._sets(op)
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

    def _copy(self, source: Region, target: Region, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        yield from self._region(source, counters)
        yield from self._region(target, counters)
        if source.rows != target.rows:
            yield (
                f"copies {source.rows} rows to {target.rows} rows",
                f"make both regions {max(source.rows, target.rows)} rows",
            )

    def _sets(self, op: Compute) -> Iterator[tuple[str, str]]:
        arrays = [array for _, array in op.sets]
        for array in dict.fromkeys(arrays):
            if array not in self._scalars:
                yield f"sets {array}, which is not declared", f"declare smem {array}"
            if arrays.count(array) > 1:
                yield f"sets {array} twice", "give each parameter an array of its own"

    def _peer(self, peer: Expr, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        yield from self._expr(peer, counters)
        if self._devices == 1:
            yield "goes to another device, and there is one only", "state `devices` with the number of devices"

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

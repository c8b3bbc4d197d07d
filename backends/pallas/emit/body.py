"""The kernel's body: a line for every transfer, wait and computation, in the program's order."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.backends.pallas.emit.expressions import condition, expression, is_static
from schedc.ir.expr import Binary, Const, Expr
from schedc.ir.program import (
    Await,
    Buffer,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    Region,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Wait,
    When,
    walk,
)

WIDTH = 120
INDENT = "    "


class BodyEmitter:
    """Emits lines, and remembers on which line each operation starts."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.semaphores = {semaphore.name: semaphore for semaphore in program.semaphores}
        self.words = max(program.pools, key=lambda pool: pool.rows).name
        self.lines: list[str] = []
        self.operation_lines: list[tuple[int, Op]] = []
        """(index in `lines`, operation) in program order."""

    def emit(self, ops: tuple[Op, ...], depth: int, unrolled: frozenset[str] = frozenset()) -> None:
        for op in ops:
            self.operation_lines.append((len(self.lines), op))
            self._emit(op, depth, unrolled)

    def _put(self, depth: int, text: str) -> None:
        self.lines.append(f"{INDENT * depth}{text}" if text else "")

    def _emit(self, op: Op, depth: int, unrolled: frozenset[str]) -> None:
        match op:
            case Phase(name, body):
                self._put(depth, f"# {name}")
                self.emit(body, depth, unrolled)
                self._put(depth, "")
            case Loop(counter, trips, body, True):
                self._put(depth, f"for {counter} in range({expression(trips, unrolled)}):")
                self._block(body, depth + 1, unrolled | {counter})
            case Loop(counter, trips, body, _):
                self._put(depth, f"@pl.loop(0, {expression(trips, unrolled)})")
                self._put(depth, f"def _({counter}):")
                self._block(body, depth + 1, unrolled)
            case When(conditions, body):
                self._put(depth, f"@pl.when({condition(conditions, unrolled)})")
                self._put(depth, "def _():")
                self._block(body, depth + 1, unrolled)
            case Start(source, target, semaphore):
                places = f"{self.region(source, unrolled)}, {self.region(target, unrolled)}"
                self._put(depth, f"copy({places}, {self.semaphore(semaphore, unrolled)}).start()")
            case Wait(semaphore, rows):
                self._put(depth, f"wait({self.semaphore(semaphore, unrolled)}, {self.words}, {rows})")
            case Signal(semaphore, amount):
                self._put(depth, f"signal({self.semaphore(semaphore, unrolled)}, {amount})")
            case Await(semaphore, amount):
                self._put(depth, f"await_signal({self.semaphore(semaphore, unrolled)}, {amount})")
            case SetScalar(array, index, value):
                self._put(depth, f"{array}[{expression(index, unrolled)}] = {expression(value, unrolled)}")
            case Compute():
                for line in wrapped(f"{op.kind}(", list(self._arguments(op, unrolled)), INDENT * depth):
                    self.lines.append(line)

    def _block(self, body: tuple[Op, ...], depth: int, unrolled: frozenset[str]) -> None:
        """The body of a loop or a condition: Python wants a statement, also where there is nothing to do."""
        self.emit(body, depth, unrolled)
        if all(isinstance(op, Phase) for op in walk(body)):
            self._put(depth, "pass")

    def _arguments(self, op: Compute, unrolled: frozenset[str]) -> Iterator[str]:
        for operand in op.operands:
            yield f"{operand.name}={self.region(operand.region, unrolled)}"
        lists: dict[str, list[str]] = {}
        for name, value in op.scalars:
            base, dot, _ = name.partition(".")
            if dot:
                lists.setdefault(base, []).append(expression(value, unrolled))
            else:
                yield f"{name}={expression(value, unrolled)}"
        for name, values in lists.items():
            yield f"{name}=[{', '.join(values)}]"
        for name, attribute in op.attributes:
            yield f"{name}={attribute!r}"

    def semaphore(self, ref: SemaphoreRef, unrolled: frozenset[str]) -> str:
        return f"{ref.name}.at[{expression(ref.index, unrolled)}]"

    def region(self, region: Region, unrolled: frozenset[str]) -> str:
        """A view of the region: its buffer's name, the slot if there are several, the rows if not all."""
        buffer = self.buffers.get(region.storage)
        if buffer is None:
            return self._rows(region.storage, region.offset, region.rows, unrolled)
        base = buffer.name if buffer.slots == 1 else f"{buffer.name}({expression(region.slot, unrolled)})"
        whole = region.offset == Const(0) and region.rows == buffer.rows
        return base if whole else self._rows(base, region.offset, region.rows, unrolled)

    def _rows(self, base: str, offset: Expr, rows: int, unrolled: frozenset[str]) -> str:
        text = expression(offset, unrolled)
        if is_static(offset, unrolled) or not aligned(offset):
            return f"{base}.at[pl.ds({text}, {rows})]"
        return f"{base}.at[pl.ds(pl.multiple_of({text}, 8), {rows})]"


def aligned(expr: Expr) -> bool:
    """Whether a dynamic offset is a multiple of 8 by its form: sums of products with a multiple of 8."""
    match expr:
        case Const(value):
            return value % 8 == 0
        case Binary("+" | "-", left, right):
            return aligned(left) and aligned(right)
        case Binary("*", left, right):
            return aligned(left) or aligned(right)
        case _:
            return False


def buffer_lines(buffer: Buffer, depth: int) -> list[str]:
    """A buffer as a view of its pool, or as a function of the slot."""
    assert buffer.address is not None
    if buffer.slots == 1:
        return [f"{INDENT * depth}{buffer.name} = {buffer.pool}.at[pl.ds({buffer.address}, {buffer.rows})]"]
    return [f"{INDENT * depth}{buffer.name} = slots({buffer.pool}, {buffer.address}, {buffer.rows})"]


def wrapped(head: str, arguments: list[str], indent: str) -> list[str]:
    """`head` with its arguments on one line, or as many full lines as it takes."""
    flat = f"{indent}{head}{', '.join(arguments)})"
    if len(flat) <= WIDTH:
        return [flat]
    lines, current = [f"{indent}{head}"], f"{indent}{INDENT}"
    for argument in arguments:
        piece = f"{argument}, "
        if len(current) + len(piece) > WIDTH and current.strip():
            lines.append(current.rstrip())
            current = f"{indent}{INDENT}"
        current += piece
    return [*lines, current.rstrip(), f"{indent})"]

"""The kernel's body: a line for every transfer, wait and computation, in the program's order."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.backends.pallas.emit.expressions import condition, expression, is_static
from schedc.backends.pallas.emit.included import OPERATION_ATTRIBUTES
from schedc.backends.pallas.errors import EmitError
from schedc.ir.expr import Binary, Compare, Const, Element, Expr, Rank, leaves
from schedc.ir.program import (
    Await,
    Barrier,
    Buffer,
    Case,
    Compute,
    Loop,
    Op,
    Phase,
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
    walk,
)
from schedc.ir.text_print import print_op

WIDTH = 120
INDENT = "    "


class BodyEmitter:
    """Emits lines, and remembers on which line each operation starts and what the body needs to be declared."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.tables = frozenset(scalars.name for scalars in program.scalars if scalars.role == "table")
        self.lines: list[str] = []
        self.operation_lines: list[tuple[int, Op]] = []
        """(index in `lines`, operation) in program order."""
        self.uses_rank = False
        self.static_tables: set[str] = set()
        """Tables that are read when the kernel is traced."""
        self.smem_tables: set[str] = set()
        """Tables that are read when it runs."""

    def emit_program(self) -> None:
        """Raises EmitError for a wait that no storage is large enough to describe."""
        self.emit(self.program.body, 1, self.tables)

    def emit(self, ops: tuple[Op, ...], depth: int, known: frozenset[str]) -> None:
        for op in ops:
            self.operation_lines.append((len(self.lines), op))
            self._emit(op, depth, known)

    def _put(self, depth: int, text: str) -> None:
        self.lines.append(f"{INDENT * depth}{text}" if text else "")

    def _emit(self, op: Op, depth: int, known: frozenset[str]) -> None:
        match op:
            case Phase(name, body):
                self._put(depth, f"# {_one_line(name)}")
                self.emit(body, depth, known)
                self._put(depth, "")
            case Loop(counter, trips, body, True):
                self._put(depth, f"for {counter} in range({self._expression(trips, known)}):")
                self._block(body, depth + 1, known | {counter})
            case Loop(counter, trips, body, _):
                self._put(depth, f"@pl.loop(0, {self._expression(trips, known)})")
                self._put(depth, f"def _({counter}):")
                self._block(body, depth + 1, known)
            case When(conditions, body):
                self._put(depth, f"@pl.when({self._condition(conditions, known)})")
                self._put(depth, "def _():")
                self._block(body, depth + 1, known)
            case Switch(selector, cases):
                self._put(depth, f"selected = {self._expression(selector, known)}")
                self._cases(cases, depth, known, is_static(selector, known))
            case Start(source, target, semaphore):
                places = f"{self.region(source, known)}, {self.region(target, known)}"
                self._put(depth, f"copy({places}, {self.semaphore(semaphore, known)}).start()")
            case RemoteStart(source, target, peer, sent, arrived):
                places = f"{self.region(source, known)}, {self.region(target, known)}, {self._expression(peer, known)}"
                semaphores = f"{self.semaphore(sent, known)}, {self.semaphore(arrived, known)}"
                self._put(depth, f"remote_copy({places}, {semaphores}).start()")
            case Wait(semaphore, rows):
                self._put(depth, f"wait({self.semaphore(semaphore, known)}, {self._words(op)}, {rows})")
            case Signal(semaphore, amount, peer):
                place = self.semaphore(semaphore, known)
                to = "" if peer is None else f", {self._expression(peer, known)}"
                self._put(depth, f"{'signal_peer' if to else 'signal'}({place}, {amount}{to})")
            case Await(semaphore, amount):
                self._put(depth, f"await_signal({self.semaphore(semaphore, known)}, {amount})")
            case Barrier():
                self.uses_rank = True
                self._put(depth, f"barrier(rank, {self.program.devices})")
            case SetScalar(array, index, value):
                self._put(depth, f"{array}[{self._expression(index, known)}] = {self._expression(value, known)}")
            case Compute():
                for line in wrapped(f"{op.kind}(", list(self._arguments(op, known)), INDENT * depth):
                    self.lines.append(line)

    def _block(self, body: tuple[Op, ...], depth: int, known: frozenset[str]) -> None:
        """The body of a loop or a condition: Python wants a statement, also where there is nothing to do."""
        self.emit(body, depth, known)
        if all(isinstance(op, Phase) for op in walk(body)):
            self._put(depth, "pass")

    def _cases(self, cases: tuple[Case, ...], depth: int, known: frozenset[str], static: bool) -> None:
        for number, case in enumerate(cases):
            self.operation_lines.append((len(self.lines), case))
            if static:
                self._put(depth, f"{'elif' if number else 'if'} selected == {case.value}:")
            else:
                self._put(depth, f"@pl.when(selected == {case.value})")
                self._put(depth, "def _():")
            self._block(case.body, depth + 1, known)

    def _words(self, wait: Wait) -> str:
        """Storage with as many rows as the wait takes, by which it is told their number."""
        pools = [(pool.rows, pool.name) for pool in self.program.pools]
        arrays = [(array.rows, array.name) for array in self.program.arrays]
        largest = [max(kind, key=lambda storage: storage[0]) for kind in (pools, arrays) if kind]
        for rows, name in largest:
            if rows >= wait.rows:
                return name
        has = " and ".join(f"{name} has {rows}" for rows, name in largest) or "there is none"
        raise EmitError(f"{print_op(wait)}: wants a pool or an array of {wait.rows} rows, {has}: wait in several steps")

    def _arguments(self, op: Compute, known: frozenset[str]) -> Iterator[str]:
        for operand in op.operands:
            yield f"{operand.name}={self.region(operand.region, known)}"
        for name, array in op.sets:
            yield f"{name}={array}"
        lists: dict[str, list[str]] = {}
        for name, value in op.scalars:
            base, dot, _ = name.partition(".")
            if dot:
                lists.setdefault(base, []).append(self._expression(value, known))
            else:
                yield f"{name}={self._expression(value, known)}"
        for name, values in lists.items():
            yield f"{name}=[{', '.join(values)}]"
        for name, attribute in op.attributes:
            yield f"{name}={attribute}" if name in OPERATION_ATTRIBUTES else f"{name}={attribute!r}"

    def _expression(self, expr: Expr, known: frozenset[str]) -> str:
        for leaf in leaves(expr):
            match leaf:
                case Rank():
                    self.uses_rank = True
                case Element(array, index) if array in self.tables:
                    (self.static_tables if is_static(index, known) else self.smem_tables).add(array)
        return expression(expr, known)

    def _condition(self, conditions: tuple[Compare, ...], known: frozenset[str]) -> str:
        for compare in conditions:
            self._expression(compare.left, known)
            self._expression(compare.right, known)
        return condition(conditions, known)

    def semaphore(self, ref: SemaphoreRef, known: frozenset[str]) -> str:
        return f"{ref.name}.at[{self._expression(ref.index, known)}]"

    def region(self, region: Region, known: frozenset[str]) -> str:
        """A view of the region: its buffer's name, the slot if there are several, the rows if not all."""
        buffer = self.buffers.get(region.storage)
        if buffer is None:
            return self._rows(region.storage, region.offset, region.rows, known)
        base = buffer.name if buffer.slots == 1 else f"{buffer.name}({self._expression(region.slot, known)})"
        whole = region.offset == Const(0) and region.rows == buffer.rows
        return base if whole else self._rows(base, region.offset, region.rows, known)

    def _rows(self, base: str, offset: Expr, rows: int, known: frozenset[str]) -> str:
        text = self._expression(offset, known)
        if is_static(offset, known) or not aligned(offset):
            return f"{base}.at[pl.ds({text}, {rows})]"
        return f"{base}.at[pl.ds(pl.multiple_of({text}, 8), {rows})]"


def _one_line(text: str) -> str:
    """A name as a comment: what is not printable is written as its code."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


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

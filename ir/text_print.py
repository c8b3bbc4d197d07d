"""The text form of a program: one declaration or operation a line, deterministic, read back by `text_parse`.

    program double {
      pool work rows=16
      buffer tile in work rows=8 slots=2 align=8 at 0
      hbm weights rows=80 weight
      semaphore arrived[2] dma
      start weights[0 +: 8] -> tile[0 +: 8] signals arrived
      loop l < 10 {
        when l + 1 < 10 {
          start weights[(l + 1) * 8 +: 8] -> tile<(l + 1) % 2>[0 +: 8] signals arrived[(l + 1) % 2]
        }
        wait arrived[l % 2] rows=8
        compute use(x: read tile<l % 2>[0 +: 8]) {scale=0.5}
      }
    }

`storage<slot>[offset +: rows]` is a region. Slot 0 and semaphore index 0 may be left out.

What else there is, a line of each:

      devices 2
      smem pos[4] in 0..127 input
      table kind = 0, 0, 1
      remote.start tile[0 +: 8] -> inbox<l % 2>[0 +: 8] on rank ^ 1 sent sent signals arrived[l % 2]
      signal ready amount=1 on (rank + 1) % 2
      await ready amount=1
      barrier
      set full[0] = pos[0] // 16
      compute route(x: read tile[0 +: 8]) scalars(rows=pos[0]) sets ids=chosen, count=found {top_k=4}
      switch kind[l] {
        case 0 {
        }
        case 1 {
        }
      }
      phase attention {
      }
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank
from schedc.ir.program import (
    BLOCKS,
    Attribute,
    Await,
    Barrier,
    Buffer,
    Case,
    Compute,
    Loop,
    Op,
    Operand,
    Phase,
    Program,
    Region,
    RemoteStart,
    Scalars,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
"""A name that is printed as it is, unless reserved; any other is printed between double quotes."""
_RESERVED = ("true", "min", "max", "rank")
PROGRAM_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")

_PRECEDENCE = {"^": 1, "+": 2, "-": 2, "*": 3, "//": 3, "%": 3}


def print_program(program: Program) -> str:
    lines = [f"program {_program_name(program.name)} {{"]
    lines += [f"  {line}" for line in _declarations(program)]
    _body(program.body, 1, lines)
    lines.append("}")
    return "\n".join(lines) + "\n"


def operation_lines(program: Program) -> tuple[int, ...]:
    """The line (from 1) in the printed program of each operation, in the order of `program.walk`."""
    line = (
        1
        + (program.devices != 1)
        + len(program.attributes)
        + len(program.pools)
        + len(program.buffers)
        + len(program.arrays)
    )
    line += len(program.scalars) + len(program.semaphores)
    lines: list[int] = []

    def count(ops: tuple[Op, ...]) -> None:
        nonlocal line
        for op in ops:
            line += 1
            lines.append(line)
            if isinstance(op, BLOCKS):
                count(op.body)
                line += 1

    count(program.body)
    return tuple(lines)


def print_op(op: Op) -> str:
    """The one line of an operation; of a block, the line that opens it."""
    match op:
        case Start(source, target, semaphore):
            return f"start {print_region(source)} -> {print_region(target)} signals {print_semaphore(semaphore)}"
        case RemoteStart(source, target, peer, sent, arrived):
            return (
                f"remote.start {print_region(source)} -> {print_region(target)} on {print_expr(peer)} "
                f"sent {print_semaphore(sent)} signals {print_semaphore(arrived)}"
            )
        case Wait(semaphore, rows):
            return f"wait {print_semaphore(semaphore)} rows={rows}"
        case Signal(semaphore, amount, peer):
            to = "" if peer is None else f" on {print_expr(peer)}"
            return f"signal {print_semaphore(semaphore)} amount={amount}{to}"
        case Await(semaphore, amount):
            return f"await {print_semaphore(semaphore)} amount={amount}"
        case Barrier():
            return "barrier"
        case Compute():
            return _compute(op)
        case SetScalar(array, index, value):
            return f"set {_name(array)}[{print_expr(index)}] = {print_expr(value)}"
        case Loop(counter, trips, _, unroll):
            return f"loop {_name(counter)} < {print_expr(trips)} {'unroll ' if unroll else ''}{{"
        case When(conditions):
            return f"when {' and '.join(map(print_compare, conditions)) or 'true'} {{"
        case Switch(selector):
            return f"switch {print_expr(selector)} {{"
        case Case(value):
            return f"case {value} {{"
        case Phase(name):
            return f"phase {_name(name)} {{"


def print_region(region: Region) -> str:
    slot = "" if region.slot == Const(0) else f"<{print_expr(region.slot)}>"
    return f"{_name(region.storage)}{slot}[{print_expr(region.offset)} +: {region.rows}]"


def print_semaphore(semaphore: SemaphoreRef) -> str:
    index = "" if semaphore.index == Const(0) else f"[{print_expr(semaphore.index)}]"
    return _name(semaphore.name) + index


def print_compare(compare: Compare) -> str:
    return f"{print_expr(compare.left)} {compare.op} {print_expr(compare.right)}"


def print_expr(expr: Expr) -> str:
    """Infix with no more parentheses than the tree needs."""
    match expr:
        case Const(value):
            return str(value)
        case Counter(name):
            return _name(name)
        case Rank():
            return "rank"
        case Element(array, index):
            return f"{_name(array)}[{print_expr(index)}]"
        case Binary(("min" | "max") as op):
            return f"{op}({', '.join(map(print_expr, _arguments(op, expr)))})"
        case Binary(op, left, right):
            level = _PRECEDENCE[op]
            return f"{_operand(left, level)} {op} {_operand(right, level + 1)}"


def _arguments(op: str, expr: Expr) -> list[Expr]:
    """`min(min(a, b), c)` is written `min(a, b, c)`."""
    if isinstance(expr, Binary) and expr.op == op:
        return [*_arguments(op, expr.left), expr.right]
    return [expr]


def _operand(expr: Expr, level: int) -> str:
    text = print_expr(expr)
    return f"({text})" if isinstance(expr, Binary) and _PRECEDENCE.get(expr.op, level) < level else text


def _body(ops: tuple[Op, ...], depth: int, lines: list[str]) -> None:
    indent = "  " * depth
    for op in ops:
        lines.append(indent + print_op(op))
        if isinstance(op, BLOCKS):
            _body(op.body, depth + 1, lines)
            lines.append(indent + "}")


def _declarations(program: Program) -> Iterable[str]:
    if program.devices != 1:
        yield f"devices {program.devices}"
    for name, value in program.attributes:
        yield f"attribute {_name(name)} = {_attribute(value)}"
    for pool in program.pools:
        yield f"pool {_name(pool.name)} rows={pool.rows}"
    for buffer in program.buffers:
        yield _buffer(buffer)
    for array in program.arrays:
        yield f"hbm {_name(array.name)} rows={array.rows} {array.role}"
    for scalars in program.scalars:
        yield _scalars(scalars)
    for semaphore in program.semaphores:
        yield f"semaphore {_name(semaphore.name)}[{semaphore.count}] {semaphore.kind}"


def _buffer(buffer: Buffer) -> str:
    address = "" if buffer.address is None else f" at {buffer.address}"
    return (
        f"buffer {_name(buffer.name)} in {_name(buffer.pool)} "
        f"rows={buffer.rows} slots={buffer.slots} align={buffer.align}{address}"
    )


def _scalars(scalars: Scalars) -> str:
    if scalars.role == "table":
        return f"table {_name(scalars.name)} = {', '.join(map(str, scalars.values))}"
    distinct = " distinct" if scalars.distinct else ""
    return f"smem {_name(scalars.name)}[{scalars.length}] in {scalars.low}..{scalars.high} {scalars.role}{distinct}"


def _compute(op: Compute) -> str:
    text = f"compute {_name(op.kind)}({', '.join(map(_operand_text, op.operands))})"
    if op.scalars:
        text += f" scalars({', '.join(f'{_name(name)}={print_expr(value)}' for name, value in op.scalars)})"
    if op.sets:
        text += f" sets {', '.join(f'{_name(name)}={_name(array)}' for name, array in op.sets)}"
    if op.attributes:
        text += f" {{{', '.join(f'{_name(name)}={_attribute(value)}' for name, value in op.attributes)}}}"
    return text


def _operand_text(operand: Operand) -> str:
    return f"{_name(operand.name)}: {operand.access} {print_region(operand.region)}"


def _attribute(value: Attribute) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _name(name: str) -> str:
    return name if NAME.fullmatch(name) and name not in _RESERVED else json.dumps(name)


def _program_name(name: str) -> str:
    return name if PROGRAM_NAME.fullmatch(name) else json.dumps(name)

"""Read the text form back: `parse_program(print_program(p)) == p`. The grammar is that of `text_print`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from schedc.ir.expr import Compare, Const, Expr
from schedc.ir.program import (
    Array,
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
    Pool,
    Program,
    Region,
    RemoteStart,
    Scalars,
    Semaphore,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    table,
)
from schedc.ir.text_expr import read_compare, read_expr, read_index
from schedc.ir.text_lex import Cursor
from schedc.ir.text_print import PROGRAM_NAME

DECLARATIONS = ("devices", "attribute", "pool", "buffer", "hbm", "smem", "table", "semaphore")
OPERATIONS = (
    *("start", "remote.start", "wait", "signal", "await", "barrier"),
    *("compute", "set", "loop", "when", "switch", "phase"),
)
_ROLES = ("weight", "input", "state", "output")


@dataclass(frozen=True)
class Places:
    """Where a program stands in its text: (line, column), both from 1."""

    operations: tuple[tuple[int, int], ...]
    """Of every operation, in the order of `program.walk`."""
    declarations: Mapping[str, tuple[int, int]]
    """Of what has a name; of the last, if several things have it."""


def parse_program(text: str) -> Program:
    """The program that `text` describes; `#` starts a comment. Raises `IrSyntaxError`."""
    return parse_located(text)[0]


def parse_located(text: str) -> tuple[Program, Places]:
    """The program, and where in `text` its parts are. Raises `IrSyntaxError`."""
    cursor = Cursor(text)
    cursor.word("program")
    name = cursor.name("the program's name", PROGRAM_NAME)
    cursor.symbol("{")
    declared: dict[str, list[Any]] = {keyword: [] for keyword in DECLARATIONS}
    places: dict[str, int] = {}
    start = cursor.offset
    while (keyword := cursor.try_words(DECLARATIONS)) is not None:
        kind = "smem" if keyword == "table" else keyword
        if kind == "devices" and declared["devices"]:
            cursor.fail_at(start, "no second `devices`")
        made = _declaration(cursor, keyword)
        declared[kind].append(made)
        if kind not in ("devices", "attribute"):
            places[made.name] = start
        cursor.end_line()
        start = cursor.offset
    body = _ops(cursor, "a declaration, an operation or `}`" if not any(declared.values()) else None)
    if not cursor.at_end():
        cursor.fail_at(cursor.offset, "the end of the text")
    program = Program(
        name,
        pools=tuple(declared["pool"]),
        buffers=tuple(declared["buffer"]),
        arrays=tuple(declared["hbm"]),
        scalars=tuple(declared["smem"]),
        semaphores=tuple(declared["semaphore"]),
        body=body,
        devices=declared["devices"][0] if declared["devices"] else 1,
        attributes=tuple(declared["attribute"]),
    )
    located = {declared_name: cursor.position(offset) for declared_name, offset in places.items()}
    return program, Places(tuple(map(cursor.position, cursor.operations)), located)


def _declaration(cursor: Cursor, keyword: str) -> Any:
    if keyword == "devices":
        return cursor.integer("a number of devices")
    name = cursor.name(f"the name of the {keyword}")
    match keyword:
        case "attribute":
            cursor.symbol("=")
            return name, _attribute(cursor)
        case "pool":
            return Pool(name) if cursor.at_line_end() else Pool(name, _field(cursor, "rows"))
        case "buffer":
            return _buffer(cursor, name)
        case "hbm":
            return Array(name, _field(cursor, "rows"), cast(Any, cursor.word(*_ROLES)))
        case "smem":
            length = _length(cursor)
            cursor.word("in")
            low = cursor.integer()
            cursor.symbol("..")
            high = cursor.integer()
            role = cursor.word("input", "local")
            distinct = role == "input" and cursor.try_words(("distinct",)) is not None
            return Scalars(name, length, low, high, cast(Any, role), distinct=distinct)
        case "table":
            cursor.symbol("=")
            return table(name, _values(cursor))
        case _:
            count = _length(cursor) if cursor.peek("[") else 1
            return Semaphore(name, count, cast(Any, cursor.word("dma", "regular")))


def _buffer(cursor: Cursor, name: str) -> Buffer:
    """Slots, alignment and address may be left out, but come in this order."""
    cursor.word("in")
    pool, rows = cursor.name("the name of a pool"), _field(cursor, "rows")
    fields: dict[str, int] = {}
    left = ["slots", "align", "at"]
    while not cursor.at_line_end():
        choices = ", ".join(f"`{word}`" for word in left)
        word = cursor.try_words(left)
        if word is None:
            cursor.fail(f"{choices}{' or ' if left else ''}the end of the line")
        left = left[left.index(word) + 1 :]
        if word != "at":
            cursor.symbol("=")
        fields[word] = cursor.integer("the first row of the buffer" if word == "at" else "an integer")
    return Buffer(name, pool, rows, fields.get("slots", 1), fields.get("at"), fields.get("align", 8))


def _values(cursor: Cursor) -> tuple[int, ...]:
    values = [cursor.integer()]
    while cursor.try_symbol(","):
        values.append(cursor.integer())
    return tuple(values)


def _field(cursor: Cursor, name: str) -> int:
    cursor.word(name)
    cursor.symbol("=")
    return cursor.integer()


def _length(cursor: Cursor) -> int:
    cursor.symbol("[")
    length = cursor.integer()
    cursor.symbol("]")
    return length


def _ops(cursor: Cursor, expected: str | None = None) -> tuple[Op, ...]:
    """The operations up to the `}` that closes the block."""
    ops: list[Op] = []
    while not cursor.try_symbol("}"):
        start = cursor.offset
        keyword = cursor.try_words(OPERATIONS)
        if keyword is None:
            late = cursor.try_words(DECLARATIONS) is not None
            also = " (declarations stand before all operations)" if late else ""
            cursor.fail_at(start, expected or f"an operation or `}}`{also}")
        cursor.operations.append(start)
        ops.append(_op(cursor, keyword))
        cursor.end_line()
    return tuple(ops)


def _block(cursor: Cursor) -> tuple[Op, ...]:
    cursor.symbol("{")
    with cursor.nested("blocks"):
        return _ops(cursor)


def _cases(cursor: Cursor) -> tuple[Case, ...]:
    cursor.symbol("{")
    cases: list[Case] = []
    while not cursor.try_symbol("}"):
        start = cursor.offset
        if not cursor.try_word("case"):
            cursor.fail_at(start, "`case` or `}`")
        cursor.operations.append(start)
        cases.append(Case(cursor.integer("the value of the case"), _block(cursor)))
        cursor.end_line()
    return tuple(cases)


def _op(cursor: Cursor, keyword: str) -> Op:
    match keyword:
        case "start":
            source = _region(cursor)
            cursor.symbol("->")
            target = _region(cursor)
            cursor.word("signals")
            return Start(source, target, _semaphore(cursor))
        case "wait":
            return Wait(_semaphore(cursor), _field(cursor, "rows"))
        case "remote.start":
            source = _region(cursor)
            cursor.symbol("->")
            target = _region(cursor)
            cursor.word("on")
            peer = read_expr(cursor)
            cursor.word("sent")
            sent = _semaphore(cursor)
            cursor.word("signals")
            return RemoteStart(source, target, peer, sent, _semaphore(cursor))
        case "barrier":
            return Barrier()
        case "signal":
            semaphore, amount = _semaphore(cursor), _field(cursor, "amount")
            return Signal(semaphore, amount, read_expr(cursor) if cursor.try_word("on") else None)
        case "await":
            return Await(_semaphore(cursor), _field(cursor, "amount"))
        case "compute":
            return _compute(cursor)
        case "set":
            array = cursor.name("the name of a scalar array")
            index = read_index(cursor)
            cursor.symbol("=")
            return SetScalar(array, index, read_expr(cursor))
        case "loop":
            counter = cursor.name("the name of a counter")
            cursor.symbol("<")
            trips = read_expr(cursor)
            unroll = cursor.try_word("unroll")
            return Loop(counter, trips, _block(cursor), unroll)
        case "when":
            return When(_conditions(cursor), _block(cursor))
        case "switch":
            return Switch(read_expr(cursor), _cases(cursor))
        case _:
            return Phase(cursor.name("the name of the phase"), _block(cursor))


def _compute(cursor: Cursor) -> Compute:
    kind = cursor.name("the kind of computation")
    operands = _listed(cursor, "(", ")", _operand)
    scalars = _listed(cursor, "(", ")", _named_expr) if cursor.try_word("scalars") else ()
    sets = _sets(cursor) if cursor.try_word("sets") else ()
    attributes = _listed(cursor, "{", "}", _named_attribute) if cursor.peek("{") else ()
    return Compute(kind, operands, scalars, attributes, sets)


def _sets(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    sets = [_named_array(cursor)]
    while cursor.try_symbol(","):
        sets.append(_named_array(cursor))
    return tuple(sets)


def _named_array(cursor: Cursor) -> tuple[str, str]:
    name = cursor.name("the name of a parameter")
    cursor.symbol("=")
    return name, cursor.name("the name of a scalar array")


def _listed(cursor: Cursor, opening: str, closing: str, item: Any) -> tuple[Any, ...]:
    cursor.symbol(opening)
    if cursor.try_symbol(closing):
        return ()
    items = [item(cursor)]
    while cursor.try_symbol(","):
        items.append(item(cursor))
    if not cursor.try_symbol(closing):
        cursor.fail(f"`,` or `{closing}`")
    return tuple(items)


def _operand(cursor: Cursor) -> Operand:
    name = cursor.name("the name of an operand")
    cursor.symbol(":")
    access = cast(Literal["read", "write", "update"], cursor.word("read", "write", "update"))
    return Operand(name, access, _region(cursor))


def _named_expr(cursor: Cursor) -> tuple[str, Expr]:
    name = cursor.name("the name of a scalar")
    cursor.symbol("=")
    return name, read_expr(cursor)


def _named_attribute(cursor: Cursor) -> tuple[str, Attribute]:
    name = cursor.name("the name of an attribute")
    cursor.symbol("=")
    return name, _attribute(cursor)


def _attribute(cursor: Cursor) -> Attribute:
    for read in (cursor.try_string, cursor.try_float, cursor.try_integer):
        if (value := read()) is not None:
            return value
    if cursor.try_word("true"):
        return True
    return False if cursor.try_word("false") else cursor.fail("a number, a string, `true` or `false`")


def _region(cursor: Cursor) -> Region:
    storage = cursor.name("the name of a buffer or an HBM array")
    slot: Expr = Const(0)
    if cursor.try_symbol("<"):
        slot = read_expr(cursor)
        cursor.symbol(">")
    cursor.symbol("[")
    offset = read_expr(cursor)
    cursor.symbol("+:")
    rows = cursor.integer("a number of rows")
    cursor.symbol("]")
    return Region(storage, rows, offset, slot)


def _semaphore(cursor: Cursor) -> SemaphoreRef:
    name = cursor.name("the name of a semaphore")
    return SemaphoreRef(name, read_index(cursor) if cursor.peek("[") else Const(0))


def _conditions(cursor: Cursor) -> tuple[Compare, ...]:
    if cursor.try_word("true"):
        if cursor.peek("{"):
            return ()
        cursor.fail("`{`")
    conditions = [read_compare(cursor)]
    while cursor.try_word("and"):
        conditions.append(read_compare(cursor))
    return tuple(conditions)

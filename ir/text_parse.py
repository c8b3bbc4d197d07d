"""Read the text form back: `parse_program(print_program(p)) == p`. The grammar is that of `text_print`."""

from __future__ import annotations

from typing import Any, Literal, cast

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank
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
from schedc.ir.text_lex import Cursor
from schedc.ir.text_print import PROGRAM_NAME

_DECLARATIONS = ("devices", "attribute", "pool", "buffer", "hbm", "smem", "table", "semaphore")
_OPERATIONS = (
    *("start", "remote.start", "wait", "signal", "await", "barrier"),
    *("compute", "set", "loop", "when", "switch", "phase"),
)
_COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
_ROLES = ("weight", "input", "state", "output")


def parse_program(text: str) -> Program:
    """The program that `text` describes; `#` starts a comment. Raises `IrSyntaxError`."""
    cursor = Cursor(text)
    cursor.word("program")
    name = cursor.name("the program's name", PROGRAM_NAME)
    cursor.symbol("{")
    declared: dict[str, list[Any]] = {keyword: [] for keyword in _DECLARATIONS}
    while (keyword := _keyword(cursor, _DECLARATIONS)) is not None:
        kind = "smem" if keyword == "table" else keyword
        if kind == "devices" and declared["devices"]:
            cursor.fail("a declaration other than a second `devices`")
        declared[kind].append(_declaration(cursor, keyword))
        cursor.end_line()
    body = _ops(cursor, "a declaration, an operation or `}`" if not any(declared.values()) else None)
    if not cursor.at_end():
        cursor.fail("the end of the text")
    return Program(
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


def parse_expr(text: str) -> Expr:
    cursor = Cursor(text)
    expr = _expr(cursor)
    if not cursor.at_end():
        cursor.fail("an operator or the end of the text")
    return expr


def _keyword(cursor: Cursor, keywords: tuple[str, ...]) -> str | None:
    return next((keyword for keyword in keywords if cursor.try_word(keyword)), None)


def _declaration(cursor: Cursor, keyword: str) -> Any:
    if keyword == "devices":
        return cursor.integer("a number of devices")
    name = cursor.name(f"the name of the {keyword}")
    match keyword:
        case "attribute":
            cursor.symbol("=")
            return name, _attribute(cursor)
        case "pool":
            return Pool(name, _field(cursor, "rows"))
        case "buffer":
            cursor.word("in")
            pool = cursor.name("the name of a pool")
            rows, slots, align = (_field(cursor, field) for field in ("rows", "slots", "align"))
            address = cursor.integer() if cursor.try_word("at") else None
            return Buffer(name, pool, rows, slots, address, align)
        case "hbm":
            return Array(name, _field(cursor, "rows"), cast(Any, cursor.word(*_ROLES)))
        case "smem":
            length = _length(cursor)
            cursor.word("in")
            low = cursor.integer()
            cursor.symbol("..")
            high = cursor.integer()
            return Scalars(name, length, low, high, cast(Any, cursor.word("input", "local")))
        case "table":
            cursor.symbol("=")
            return table(name, _values(cursor))
        case _:
            return Semaphore(name, _length(cursor), cast(Any, cursor.word("dma", "regular")))


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
        keyword = _keyword(cursor, _OPERATIONS)
        if keyword is None:
            cursor.fail(expected or "an operation or `}`")
        ops.append(_op(cursor, keyword))
        cursor.end_line()
    return tuple(ops)


def _block(cursor: Cursor) -> tuple[Op, ...]:
    cursor.symbol("{")
    return _ops(cursor)


def _cases(cursor: Cursor) -> tuple[Case, ...]:
    cursor.symbol("{")
    cases: list[Case] = []
    while not cursor.try_symbol("}"):
        if not cursor.try_word("case"):
            cursor.fail("`case` or `}`")
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
            peer = _expr(cursor)
            cursor.word("sent")
            sent = _semaphore(cursor)
            cursor.word("signals")
            return RemoteStart(source, target, peer, sent, _semaphore(cursor))
        case "barrier":
            return Barrier()
        case "signal":
            semaphore, amount = _semaphore(cursor), _field(cursor, "amount")
            return Signal(semaphore, amount, _expr(cursor) if cursor.try_word("on") else None)
        case "await":
            return Await(_semaphore(cursor), _field(cursor, "amount"))
        case "compute":
            return _compute(cursor)
        case "set":
            array = cursor.name("the name of a scalar array")
            index = _index(cursor)
            cursor.symbol("=")
            return SetScalar(array, index, _expr(cursor))
        case "loop":
            counter = cursor.name("the name of a counter")
            cursor.symbol("<")
            trips = _expr(cursor)
            unroll = cursor.try_word("unroll")
            return Loop(counter, trips, _block(cursor), unroll)
        case "when":
            return When(_conditions(cursor), _block(cursor))
        case "switch":
            return Switch(_expr(cursor), _cases(cursor))
        case _:
            return Phase(cursor.name("the name of the phase"), _block(cursor))


def _compute(cursor: Cursor) -> Compute:
    kind = cursor.name("the kind of computation")
    operands = _listed(cursor, "(", ")", _operand)
    scalars = _listed(cursor, "(", ")", _named_expr) if cursor.try_word("scalars") else ()
    attributes = _listed(cursor, "{", "}", _named_attribute) if cursor.peek("{") else ()
    return Compute(kind, operands, scalars, attributes)


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
    return name, _expr(cursor)


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
        slot = _expr(cursor)
        cursor.symbol(">")
    cursor.symbol("[")
    offset = _expr(cursor)
    cursor.symbol("+:")
    rows = cursor.integer("a number of rows")
    cursor.symbol("]")
    return Region(storage, rows, offset, slot)


def _semaphore(cursor: Cursor) -> SemaphoreRef:
    name = cursor.name("the name of a semaphore")
    return SemaphoreRef(name, _index(cursor) if cursor.peek("[") else Const(0))


def _index(cursor: Cursor) -> Expr:
    cursor.symbol("[")
    index = _expr(cursor)
    cursor.symbol("]")
    return index


def _conditions(cursor: Cursor) -> tuple[Compare, ...]:
    if cursor.try_word("true"):
        if cursor.peek("{"):
            return ()
        cursor.fail("`{`")
    conditions = [_compare(cursor)]
    while cursor.try_word("and"):
        conditions.append(_compare(cursor))
    return tuple(conditions)


def _compare(cursor: Cursor) -> Compare:
    left = _expr(cursor)
    op = next((op for op in _COMPARISONS if cursor.try_symbol(op)), None)
    if op is None:
        cursor.fail("a comparison")
    return Compare(cast(Any, op), left, _expr(cursor))


def _expr(cursor: Cursor) -> Expr:
    left = _sum(cursor)
    while cursor.try_symbol("^"):
        left = Binary("^", left, _sum(cursor))
    return left


def _sum(cursor: Cursor) -> Expr:
    left = _term(cursor)
    while not cursor.peek("+:") and not cursor.peek("->"):
        op = next((op for op in "+-" if cursor.try_symbol(op)), None)
        if op is None:
            break
        left = Binary(cast(Any, op), left, _term(cursor))
    return left


def _term(cursor: Cursor) -> Expr:
    left = _atom(cursor)
    while (op := next((op for op in ("*", "//", "%") if cursor.try_symbol(op)), None)) is not None:
        left = Binary(cast(Any, op), left, _atom(cursor))
    return left


def _atom(cursor: Cursor) -> Expr:
    if cursor.try_symbol("("):
        expr = _expr(cursor)
        cursor.symbol(")")
        return expr
    if (value := cursor.try_integer()) is not None:
        return Const(value)
    quoted = cursor.try_string()
    name = quoted if quoted is not None else cursor.try_name()
    if name is None:
        cursor.fail("an expression")
    if quoted is None and name in ("min", "max") and cursor.peek("("):
        first, *rest = _listed(cursor, "(", ")", _expr) or cursor.fail("an expression")
        for term in rest:
            first = Binary(cast(Any, name), first, term)
        return first
    if quoted is None and name == "rank" and not cursor.peek("["):
        return Rank()
    return Element(name, _index(cursor)) if cursor.peek("[") else Counter(name)

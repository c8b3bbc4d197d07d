"""Read expressions and comparisons: the grammar that `text_print.print_expr` writes."""

from __future__ import annotations

from typing import Any, cast

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank
from schedc.ir.text_lex import Cursor

_COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
MOST_LEVELS = 100
"""Operators above each other in the tree of an expression: what reads a program goes as deep as the tree."""


def parse_expr(text: str) -> Expr:
    """The expression that `text` is. Raises `IrSyntaxError`."""
    cursor = Cursor(text)
    expr = read_expr(cursor)
    if not cursor.at_end():
        cursor.fail("an operator or the end of the text")
    return expr


def read_expr(cursor: Cursor) -> Expr:
    start = cursor.offset
    expr = _whole(cursor)
    if _levels(expr) > MOST_LEVELS:
        cursor.fail_at(start, f"an expression of at most {MOST_LEVELS} operators above each other")
    return expr


def read_compare(cursor: Cursor) -> Compare:
    left = read_expr(cursor)
    op = cursor.try_symbols(_COMPARISONS)
    if op is None:
        cursor.fail("a comparison")
    return Compare(cast(Any, op), left, read_expr(cursor))


def read_index(cursor: Cursor) -> Expr:
    cursor.symbol("[")
    index = read_expr(cursor)
    cursor.symbol("]")
    return index


def _levels(expr: Expr) -> int:
    """The height of the tree, without recursion."""
    if not isinstance(expr, (Binary, Element)):
        return 0
    highest = 0
    queue: list[tuple[Expr, int]] = [(expr, 0)]
    while queue:
        node, level = queue.pop()
        highest = max(highest, level)
        if isinstance(node, Binary):
            queue += [(node.left, level + 1), (node.right, level + 1)]
        elif isinstance(node, Element):
            queue.append((node.index, level + 1))
    return highest


def _whole(cursor: Cursor) -> Expr:
    left = _sum(cursor)
    while cursor.try_symbol("^"):
        left = Binary("^", left, _sum(cursor))
    return left


def _sum(cursor: Cursor) -> Expr:
    left = _term(cursor)
    while not cursor.peek("+:", "->") and (op := cursor.try_symbols(("+", "-"))) is not None:
        left = Binary(cast(Any, op), left, _term(cursor))
    return left


def _term(cursor: Cursor) -> Expr:
    left = _atom(cursor)
    while (op := cursor.try_symbols(("*", "//", "%"))) is not None:
        left = Binary(cast(Any, op), left, _atom(cursor))
    return left


def _atom(cursor: Cursor) -> Expr:
    if cursor.try_symbol("("):
        with cursor.nested("brackets"):
            expr = _whole(cursor)
        cursor.symbol(")")
        return expr
    if (value := cursor.try_integer()) is not None:
        return Const(value)
    quoted = cursor.try_string()
    name = quoted if quoted is not None else cursor.try_name()
    if name is None:
        cursor.fail("an expression")
    if quoted is None and name in ("min", "max") and cursor.peek("("):
        return _extreme(cursor, name)
    if quoted is None and name == "rank" and not cursor.peek("["):
        return Rank()
    if not cursor.try_symbol("["):
        return Counter(name)
    with cursor.nested("brackets"):
        index = _whole(cursor)
    cursor.symbol("]")
    return Element(name, index)


def _extreme(cursor: Cursor, name: str) -> Expr:
    """`min(a, b, c)` is `min(min(a, b), c)`."""
    cursor.symbol("(")
    with cursor.nested("brackets"):
        first = _whole(cursor)
        while cursor.try_symbol(","):
            first = Binary(cast(Any, name), first, _whole(cursor))
    if not cursor.try_symbol(")"):
        cursor.fail("`,` or `)`")
    return first

"""Integer expressions as Python source.

What depends only on the counters of unrolled loops and on tables is a Python number when the
kernel is traced and keeps Python's operators; everything else is a traced int32, whose division
and remainder must be `lax.div` and `lax.rem` (`//` and `%` do not compile ahead of time).

`known` are the names that are Python objects in the kernel: counters of unrolled loops and
tables. A table whose index is traced is read from its copy in SMEM.
"""

from __future__ import annotations

from collections.abc import Set

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank, leaves

_PRECEDENCE = {"^": 1, "+": 2, "-": 2, "*": 3, "//": 3, "%": 3}


def is_static(expr: Expr, known: Set[str]) -> bool:
    """Whether the value is known when the kernel is traced."""
    return all(
        (isinstance(leaf, Counter) and leaf.name in known) or (isinstance(leaf, Element) and leaf.array in known)
        for leaf in leaves(expr)
    )


def in_smem(table: str) -> str:
    """The name of a table's copy in SMEM."""
    return f"{table}_in_smem"


def expression(expr: Expr, known: Set[str] = frozenset(), outer: int = 0) -> str:
    match expr:
        case Const(value):
            return str(value)
        case Counter(name):
            return name
        case Rank():
            return "rank"
        case Element(array, index):
            traced_table = array in known and not is_static(index, known)
            return f"{in_smem(array) if traced_table else array}[{expression(index, known)}]"
        case Binary(op, left, right):
            if not is_static(expr, known) and op in ("//", "%"):
                function = {"//": "lax.div", "%": "lax.rem"}[op]
                return f"{function}({expression(left, known)}, {expression(right, known)})"
            if op in ("min", "max"):
                function = op if is_static(expr, known) else {"min": "jnp.minimum", "max": "jnp.maximum"}[op]
                return f"{function}({expression(left, known)}, {expression(right, known)})"
            level = _PRECEDENCE[op]
            text = f"{expression(left, known, level)} {op} {expression(right, known, level + 1)}"
            return f"({text})" if level < outer else text


def condition(conditions: tuple[Compare, ...], known: Set[str]) -> str:
    texts = [f"{expression(c.left, known)} {c.op} {expression(c.right, known)}" for c in conditions]
    return (texts or ["True"])[0] if len(texts) < 2 else " & ".join(f"({text})" for text in texts)

"""Integer expressions as Python source.

What depends only on the counters of unrolled loops is a Python number when the kernel is
traced and keeps Python's operators; everything else is a traced int32, whose division and
remainder must be `lax.div` and `lax.rem` (`//` and `%` do not compile ahead of time).
"""

from __future__ import annotations

from collections.abc import Set

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, leaves

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


def is_static(expr: Expr, unrolled: Set[str]) -> bool:
    """Whether the value is known when the kernel is traced."""
    return all(isinstance(leaf, Counter) and leaf.name in unrolled for leaf in leaves(expr))


def expression(expr: Expr, unrolled: Set[str] = frozenset(), outer: int = 0) -> str:
    match expr:
        case Const(value):
            return str(value)
        case Counter(name):
            return name
        case Element(array, index):
            return f"{array}[{expression(index, unrolled)}]"
        case Binary(op, left, right):
            if not is_static(expr, unrolled) and op in ("//", "%"):
                function = {"//": "lax.div", "%": "lax.rem"}[op]
                return f"{function}({expression(left, unrolled)}, {expression(right, unrolled)})"
            if op in ("min", "max"):
                function = op if is_static(expr, unrolled) else {"min": "jnp.minimum", "max": "jnp.maximum"}[op]
                return f"{function}({expression(left, unrolled)}, {expression(right, unrolled)})"
            level = _PRECEDENCE[op]
            text = f"{expression(left, unrolled, level)} {op} {expression(right, unrolled, level + 1)}"
            return f"({text})" if level < outer else text


def condition(conditions: tuple[Compare, ...], unrolled: Set[str]) -> str:
    texts = [f"{expression(c.left, unrolled)} {c.op} {expression(c.right, unrolled)}" for c in conditions]
    return texts[0] if len(texts) == 1 else " & ".join(f"({text})" for text in texts)

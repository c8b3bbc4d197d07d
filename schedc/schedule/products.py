"""Name the product of every dot: the form in which it multiplies by the words of its weights' format.

before:  compute matmul(...) {..., format="mxfp4"}      after:  compute matmul(...) {..., product=mxfp4_dequantised}
"""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.program import BLOCKS, Compute, Op, Program
from schedc.weights.formats import FORMATS


def with_products(program: Program) -> Program:
    """The same program, with the attribute `product` where a computation had `format`."""
    return replace(program, body=_named(program.body))


def _named(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    return tuple(_named_op(op) for op in ops)


def _named_op(op: Op) -> Op:
    if isinstance(op, BLOCKS):
        return replace(op, body=_named(op.body))  # type: ignore[arg-type]
    if not isinstance(op, Compute):
        return op
    attributes = tuple(
        ("product", product_of(str(value))) if name == "format" else (name, value) for name, value in op.attributes
    )
    return op if attributes == op.attributes else replace(op, attributes=attributes)


def product_of(stored: str) -> str:
    return f"{stored}_{'direct' if FORMATS[stored].exact else 'dequantised'}"

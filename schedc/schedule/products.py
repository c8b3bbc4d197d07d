"""Name the product of every dot: the form in which it multiplies by the words of its weights' format.

before:  compute matmul(…) rows=8 dtype="bf16" format="mxfp4"
after:   compute matmul(…) rows=8 dtype="bf16" product="mxfp4_block_diagonal" sequences=1

Any computation with the attributes `format` and `dtype` takes part. `sequences` are the rows that count, of those there
are. The form is the one that takes the fewest issue cycles on the chip (schedc/target/products.yaml), or one that is
asked for by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schedc.errors import UserError
from schedc.ir.program import BLOCKS, Attribute, Compute, Op, Program, walk
from schedc.lower.graph import StepShape
from schedc.target.products import EXACT_FORMS, ProductTable
from schedc.target.target import Target


def with_products(program: Program, shape: StepShape, target: Target) -> Program:
    """The same program, with `product` and `sequences` where a computation had `format`.

    Raises UserError for a format of which the chip can take no form, or not the one that is asked for.
    """
    return replace(program, body=_Naming(shape, ProductTable.of(target)).ops(program.body))


def products_of(program: Program) -> tuple[str, ...]:
    """The products that a program computes with, in alphabetical order."""
    attributes = (dict(op.attributes) for op in walk(program.body) if isinstance(op, Compute))
    return tuple(sorted({str(found["product"]) for found in attributes if "product" in found}))


def refuse_unused_forms(program: Program, shape: StepShape) -> None:
    """Raises UserError for a form that is asked for and changes nothing: of no weights, or of weights with f32 rows."""
    found = products_of(program)
    unused = [f"{stored}={form}" for stored, form in shape.forms if f"{stored}_{form}" not in found]
    if unused:
        raise UserError(f"--form {', '.join(unused)} has no effect: the program takes {', '.join(found)}; leave it out")


@dataclass(frozen=True)
class _Naming:
    shape: StepShape
    table: ProductTable

    def ops(self, ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(self.op(op) for op in ops)

    def op(self, op: Op) -> Op:
        if isinstance(op, BLOCKS):
            return replace(op, body=self.ops(op.body))  # type: ignore[arg-type]
        if not isinstance(op, Compute) or "format" not in dict(op.attributes):
            return op
        stored, dtype = (str(dict(op.attributes)[name]) for name in ("format", "dtype"))
        named: tuple[tuple[str, Attribute], ...] = (
            ("product", f"{stored}_{self.form(stored, dtype)}"),
            ("sequences", self.shape.rows),
        )
        kept = tuple(attribute for attribute in op.attributes if attribute[0] != "format")
        return replace(op, attributes=kept + named)

    def form(self, stored: str, dtype: str) -> str:
        asked = dict(self.shape.forms).get(stored)
        if asked is not None and dtype == "bf16":
            return self._checked(stored, asked)
        fastest = self.table.fastest(stored, self.shape.rows, dtype)
        if fastest is None:
            every = self.table.file.forms[stored]
            known = [form for form in every if dtype == "bf16" or form in EXACT_FORMS]
            needs = [f"{form} needs {', '.join(every[form])}" for form in known]
            has = ", ".join(self.table.target.capability.word_bitcasts)
            raise UserError(
                f"weights in {stored} with {dtype} rows cannot run on {self.table.target.chip.name}, which takes words "
                f"as {has}: {'; '.join(needs)}; store them in another format"
            )
        return fastest

    def _checked(self, stored: str, form: str) -> str:
        known = self.table.file.forms[stored]
        if form not in known:
            raise UserError(f"weights in {stored} have no form {form!r}; they have {', '.join(known)}")
        lacking = self.table.lacks(stored, form)
        if lacking:
            raise UserError(
                f"the form {form} of {stored} needs words taken as {', '.join(lacking)}, which "
                f"{self.table.target.chip.name} cannot; it can take {', '.join(self.table.usable(stored, 'bf16'))}"
            )
        return form

"""How dots take their weights: the form of each format, by the issue cycles of the table of products."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.compiler.decisions.decision import Alternative, Decision
from schedc.compiler.pipeline import Request
from schedc.ir.program import Compute, Program, walk
from schedc.target.products import EXACT_FORMS, ProductTable


def decisions(request: Request, program: Program) -> Iterator[Decision]:
    """One for each format and dtype of rows that the program has, in the order in which they come."""
    table = ProductTable.of(request.target)
    asked = dict(request.shape.forms)
    (inputs, columns), rows = table.file.large, request.shape.rows
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for op in walk(program.body):
        attributes = dict(op.attributes) if isinstance(op, Compute) else {}
        if "product" in attributes:
            stored, form = _split(table, str(attributes["product"]))
            key = stored, str(attributes["dtype"])
            found[key] = form, found.get(key, ("", 0))[1] + 1
    for (stored, dtype), (form, places) in found.items():
        forms = [f for f in table.file.forms[stored] if dtype == "bf16" or f in EXACT_FORMS]
        others = tuple(_alternative(table, stored, other, rows) for other in forms if other != form)
        why = "asked for" if asked.get(stored) == form else "the fewest issue cycles on this chip"
        if not others:
            why = "there is no other form for these rows"
        entry = table.measured(f"{stored}_{form}", rows)
        yield Decision(
            "product",
            f"{stored} weights with {dtype} rows ({places} {'place' if places == 1 else 'places'})",
            form,
            why,
            f"cycles of [{rows}, {inputs}] x [{inputs}, {columns}]",
            None if entry is None else entry.large,
            others,
        )


def _split(table: ProductTable, product: str) -> tuple[str, str]:
    """`mxfp4_block_diagonal` → (mxfp4, block_diagonal)"""
    stored = max((name for name in table.file.forms if product.startswith(f"{name}_")), key=len)
    return stored, product.removeprefix(f"{stored}_")


def _alternative(table: ProductTable, stored: str, form: str, rows: int) -> Alternative:
    lacking = table.lacks(stored, form)
    if lacking:
        return Alternative(form, None, f"the chip cannot take words as {', '.join(lacking)}")
    entry = table.measured(f"{stored}_{form}", rows)
    return Alternative(form, None, "not measured") if entry is None else Alternative(form, entry.large)

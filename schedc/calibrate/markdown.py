"""The tables of docs/calibration.md, which a test holds to what the command prints."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.calibrate.constants import FREE, IN_FLIGHT, Values
from schedc.calibrate.table import Table


def as_markdown(table: Table, values: Values) -> str:
    return "\n".join(_lines(table, values)) + "\n"


def _lines(table: Table, values: Values) -> Iterator[str]:
    what = {constant.figure: constant.what for constant in FREE}
    what[IN_FLIGHT] = "transfers that share the HBM at a time (chosen by trying)"
    yield from ("### Constants", "", "| constant | value | |", "|---|---:|---|")
    for name, value in values.items():
        yield f"| `{name}` | {value:g} | {what[name]} |"
    yield from ("", "### Predicted and measured", "")
    yield from ("| row | predicted | measured | unit | error | use |", "|---|---:|---:|---|---:|---|")
    for row in table.rows:
        yield f"| {row.name} | {row.predicted:.4g} | {row.measured:.4g} | {row.unit} | {row.error:+.1%} | {row.use} |"
    yield from ("", "### What their trials found", "")
    yield from ("| trial | predicted | found | unit | same direction |", "|---|---:|---:|---|---|")
    for trial in table.trials:
        found = f"gains at most {trial.found:.4g}" if trial.at_most else f"{trial.found:.4g}"
        agrees = "yes" if trial.agrees else "**no**"
        yield f"| {trial.name} | {trial.predicted:.4g} | {found} | {trial.unit} | {agrees} |"
    yield ""
    orders = f"predicted {table.order('predicted')}; measured {table.order('measured')}"
    yield f"Slots of the experts, the quickest first: {orders}."
    yield from ("", "### Measured, and not predicted", "", "| rows | what they are, and why |", "|---:|---|")
    for why, count in table.left_out:
        yield f"| {count} | {why} |"

"""A placement as a table."""

from typing import TYPE_CHECKING

from schedc.cli.console import simple_table

if TYPE_CHECKING:
    from rich.table import Table

    from schedc.compiler.placement import PlacementReport

MIB = 2**20


def placement_table(report: "PlacementReport") -> "Table":
    """A line a statement; bytes stand in the first line of their family."""
    table = simple_table(
        "family", "by", "a device has", "copies", "padding", "once MiB", "device MiB", "over",
        right=("copies", "padding", "once MiB", "device MiB", "over"),
    )  # fmt: skip
    for column in table.columns:
        column.no_wrap = True
    for family in report.families:
        sizes = [f"{family.once / MIB:,.0f}", f"{family.device / MIB:,.0f}", f"{family.over(report.devices):.0%}"]
        for statement in family.held:
            padding = f"{statement.padding:.1%}"
            table.add_row(family.family, statement.rule, statement.what, str(statement.copies), padding, *sizes)
            sizes = ["", "", ""]
        if not family.held:
            table.add_row(family.family, "replicated", "all", str(report.devices), "0.0%", *sizes)
    sizes = ["", f"{sum(report.caches.values()) / MIB:,.0f}", ""]
    for statement in report.cache_statements:
        padding = f"{statement.padding:.1%}"
        table.add_row("cache", statement.rule, statement.what, str(statement.copies), padding, *sizes)
        sizes = ["", "", ""]
    return table


def placement_lines(report: "PlacementReport") -> list[str]:
    share = report.total / report.limit
    verdict = "fits" if report.total <= report.limit else "does NOT fit"
    return [
        f"{report.total / MIB:,.1f} of {report.limit / MIB:,.1f} MiB a device ({share:.0%}): {verdict}; "
        f"weights {report.weights / MIB:,.1f}, caches {sum(report.caches.values()) / MIB:,.1f}, "
        f"outputs {report.outputs / MIB:,.2f}"
    ]

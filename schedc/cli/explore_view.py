"""What `schedc explore` shows: the table, what a search reached, what decisions are worth, a plot."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from schedc.cli.console import simple_table, to_stdout

if TYPE_CHECKING:
    from schedc.explore.compare import Planned
    from schedc.explore.row import Row
    from schedc.explore.setting import Setting

_COLUMNS = (
    "name",
    "step_us",
    "binding",
    "step_over_bound",
    "vmem_mib",
    "hbm_idle_us",
    "exposed_us",
    "waits_us",
    "reason",
)


def write_csv(path: Path, table: "Sequence[Row]") -> None:
    import csv
    import io

    from schedc.cli.files import write_text

    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(r.to_dict() for r in table)
    write_text(path, text.getvalue())


def plotted(path: Path, name: str, of: "Planned") -> list[dict[str, Any]]:
    """Draws time against slots and prefetch distance; the lines as numbers."""
    from schedc.explore.setting import prepared
    from schedc.explore.sweep import draw, lines

    found, setting = lines(prepared(of.setting), of.plan), of.setting
    draw(found, f"{setting.spec.name} on {setting.target.name}, rows {setting.shape.rows}: {name}", path)
    return [vars(line) for line in found]


def show(setting: "Setting", table: "Sequence[Row]") -> None:
    shape, target = setting.shape, setting.target
    rows = f"{shape.rows} tokens" if shape.rows_are == "tokens" else f"rows {shape.rows}"
    typer.echo(f"{setting.spec.name} on {target.describe()}; {rows}, context {shape.context}\n")
    slowest = max(r.step_us for r in table if r.step_us is not None)
    columns = ("µs", "faster", "bound", "over it", "VMEM MiB", "HBM idle µs", "exposed µs")
    shown = simple_table("schedule", *columns, right=columns)
    for r in sorted(table, key=lambda r: r.step_us or float("inf")):
        if r.step_us is None or r.bound is None:
            shown.add_row(r.name, r.reason)
            continue
        vmem = "" if r.vmem_mib is None else f"{r.vmem_mib:.1f}"
        name, over = r.bound
        shown.add_row(r.name, f"{r.step_us:,.1f}", f"{slowest / r.step_us:.2f}×", name, f"{over:.2f}", vmem,
                      f"{r.hbm_idle_us:,.1f}", f"{r.exposed_us:,.1f}")  # fmt: skip
    to_stdout().print(shown)


def show_reached(reached: Sequence[dict[str, Any]]) -> None:
    """The gain of a search in steps, if there was one."""
    if not reached:
        return
    typer.echo("\nwhat the search had, by what it might change\n")
    numbers = ("µs", "gain")
    shown = simple_table("from", *numbers, "collectives and wires", "placement", right=numbers)
    first, before = reached[0]["step_us"], reached[0]["placement"]
    for one in reached:
        sites = {**one["collectives"], **{f"{site} wire": wire for site, wire in one["wires"].items()}}
        changed = {rule: way for rule, way in one["placement"].items() if before.get(rule) != way}
        shown.add_row(
            one["stage"],
            f"{one['step_us']:,.1f}",
            f"{first / one['step_us']:.3f}×",
            ", ".join(f"{site}={value}" for site, value in sites.items()),
            ", ".join(f"{rule}: {_way(way)}" for rule, way in changed.items()),
        )
    to_stdout().print(shown)


def _way(way: Any) -> str:
    return f"{way['expert_parallel']}x{way['tensor_parallel']}" if isinstance(way, dict) else str(way)


def show_ablations(found: dict[str, Any] | None) -> None:
    if found is None:
        return
    typer.echo(f"\nwhat the decisions of {found['of']} are worth, one taken away at a time\n")
    shown = simple_table("decision", "µs without", "worth µs", right=("µs without", "worth µs"))
    for one in found["decisions"]:
        if one["step_us"] is None:
            shown.add_row(one["decision"], "", one["reason"])
        else:
            shown.add_row(one["decision"], f"{one['step_us']:,.1f}", f"{one['worth_us']:+,.1f}")
    to_stdout().print(shown)

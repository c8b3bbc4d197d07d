"""`schedc calibrate`: what the cost model predicts of measured times, and constants fitted to them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stderr, to_stdout

if TYPE_CHECKING:
    from schedc.calibrate.fit import Fit
    from schedc.calibrate.table import Table
    from schedc.target.target import Target

TARGET = "tpu7x:2x2x1"
WITHIN = 0.10
"""Every whole step of the final kernels is to be predicted within this."""


def register(app: typer.Typer) -> None:
    app.command()(calibrate)


def calibrate(
    target: Annotated[str, typer.Option("--target", help="Chip and topology, as for compile.")] = TARGET,
    fit: Annotated[bool, typer.Option("--fit", help="Fit the constants anew; minutes.")] = False,
    in_flight: Annotated[
        int, typer.Option("--in-flight", help="With --fit: transfers that share the HBM at a time.", min=1)
    ] = 24,
    measurements: Annotated[
        list[Path] | None,
        typer.Option("--measurements", help="More rows, as `schedc bench` writes them. May be repeated."),
    ] = None,
    kernels: Annotated[
        list[Path] | None,
        typer.Option("--kernel", help="A compiled folder that rows of `schedc bench` are of. May be repeated."),
    ] = None,
    write: Annotated[Path | None, typer.Option("--write", help="With --fit: write the calibration file.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as docs/calibration.md has it.")
    ] = False,
    json: Json = False,
) -> None:
    """Predict what was measured on hardware: predicted, measured, error; misses included.

    The rows are those that the authors of a hand-written Muse Spark kernel published, and your own. With --fit the
    physical constants are fitted to the rows that are marked `fitted` (batch 1 and 4 of the final kernels, and
    micro-benchmarks), and each of these is predicted without it, too.

    Exit code 1 if a whole step of the final kernels is missed by more than 10 %.

    Examples:

      schedc calibrate

      schedc calibrate --fit --measurements mine.csv --kernel out/smollm2-135m --write mychip.yaml
    """
    from schedc.calibrate.experiments import experiments
    from schedc.calibrate.fit import fit as fit_constants
    from schedc.calibrate.fit import leave_one_out
    from schedc.calibrate.kernels import read_kernels
    from schedc.calibrate.markdown import as_markdown
    from schedc.calibrate.shipped import rounded, shipped_values, write_calibration
    from schedc.calibrate.table import table
    from schedc.cost.calibration.measurements import PUBLISHED
    from schedc.cost.calibration.measurements import measurements as read
    from schedc.errors import CheckFailed, UserError
    from schedc.target.target import parse_target

    if write is not None and not fit:
        raise UserError("--write wants --fit: without it there is nothing new to write")
    machine = parse_target(target, 8)
    rows = tuple(row for path in (PUBLISHED, *(measurements or ())) for row in read(path))
    programs = read_kernels(kernels or ())
    without: dict[Any, float] = {}
    found = None
    if not fit:
        values = shipped_values(machine)
    else:
        with to_stderr().status("fitting the constants (minutes)"):
            found = fit_constants(tuple(experiments(rows, programs)), machine, in_flight)
        with to_stderr().status("leaving rows out one by one"):
            without = leave_one_out(found, found.fitted)
        values = rounded(found.values)
    with to_stderr().status("predicting"):
        made = table(rows, machine, values, programs)
    if write is not None:
        write_calibration(write, values, _source(rows))
    left = {experiment.name: value for experiment, value in without.items()}
    if json:
        print_json(made.to_dict() | {"constants": values, "without": left})
    elif markdown:
        print(as_markdown(made, values), end="")
    else:
        _show(made, values, left, machine, found)
    missed = [row for row in made.steps if abs(row.error) > WITHIN]
    if missed:
        names = ", ".join(f"{row.name} ({row.error:+.1%})" for row in missed)
        raise CheckFailed(f"{len(missed)} whole steps are missed by more than {WITHIN:.0%}: {names}")


def _source(rows: tuple[Any, ...]) -> str:
    from importlib.metadata import version

    from schedc import __version__

    return f"fitted to measured times ({len(rows)} rows read; schedc {__version__}, scipy {version('scipy')})"


def _show(made: "Table", values: dict[str, float], left: dict[str, float], target: "Target", fit: "Fit | None") -> None:
    out = to_stdout()
    constants = simple_table("constant", "value", "of the chip's file", right=("value", "of the chip's file"))
    for name, value in values.items():
        own = getattr(target.cost, name, None)
        constants.add_row(name, f"{value:g}", "" if own is None else f"{own:g}")
    out.print(constants)
    columns = ("predicted", "measured", "error", *(("without it",) if fit else ()))
    rows = simple_table("row", *columns, "unit", "use", right=columns)
    for row in made.rows:
        alone = ((f"{left[row.name] / row.measured - 1:+.1%}" if row.name in left else "",)) if fit else ()
        rows.add_row(
            row.name, f"{row.predicted:.4g}", f"{row.measured:.4g}", f"{row.error:+.1%}", *alone, row.unit, row.use
        )
    out.print(rows)
    trials = simple_table(
        "what they found", "predicted", "found", "unit", "same direction", right=("predicted", "found")
    )
    for trial in made.trials:
        limit = f"gains at most {trial.found:.4g}" if trial.at_most else f"{trial.found:.4g}"
        trials.add_row(trial.name, f"{trial.predicted:.4g}", limit, trial.unit, "yes" if trial.agrees else "no")
    out.print(trials)
    orders = f"predicted {made.order('predicted')}, measured {made.order('measured')}"
    out.print(f"experts' slots from quickest to slowest: {orders}")
    out.print(f"not predicted: {', '.join(f'{count} x {why}' for why, count in made.left_out)}")

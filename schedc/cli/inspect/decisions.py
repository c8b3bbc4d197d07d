"""`schedc inspect decisions`: what was decided, what else there was, and what each costs."""

from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import Json, Stages, print_json, print_whole, simple_table, to_stdout
from schedc.cli.inspect.opened import refuse_other_rows
from schedc.cli.options import ModelOrFolder, Rows, ScheduleOptions, compiled_folder
from schedc.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from schedc.compiler.decisions.decision import Decision


def decisions(
    model: ModelOrFolder,
    options: ScheduleOptions,
    rows: Rows = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only decisions of this kind, as in `collective`.")] = None,
    predict: Annotated[
        bool,
        typer.Option("--predict", help="Predict the step under every other policy; seconds, for large models more."),
    ] = False,
    json: Json = False,
) -> None:
    """List every choice of placement, form, collective, order, tile and allocation, with the alternatives' costs.

    `schedc compile` writes the same into decisions.json and decisions.md.

    Examples:

      schedc inspect decisions out/gpt-oss-120b --kind collective

      schedc inspect decisions smollm2-135m --predict --kind policy
    """
    from schedc.compiler.decisions.log import decisions_of, with_predictions
    from schedc.compiler.pipeline import build
    from schedc.inspect.subject import of_folder
    from schedc.spec.load import load_spec

    folder = compiled_folder(model, options)
    if folder is not None:
        refuse_other_rows(folder, rows)
        subject = of_folder(folder)
        request, program, log = subject.request, subject.program, folder.decisions()
    else:
        with Stages().stage("schedule"):
            request = options.request(load_spec(model), rows)
            made, program = build(request)
            log = decisions_of(request, made, program)
    kinds = list(dict.fromkeys(one.kind for one in log))
    if kind is not None and kind not in kinds:
        raise UserError(f"--kind {kind}: the kinds are {', '.join(kinds)}")
    if predict:
        with Stages().stage("predict"):
            log = with_predictions(request, program, log)
    chosen = [one for one in log if kind in (None, one.kind)]
    if json:
        print_json([one.to_dict() for one in chosen])
        return
    console = to_stdout()
    for one in chosen:
        console.print(_heading(one), soft_wrap=True)
        if one.alternatives:
            print_whole(_table(one))
        console.print()


def _heading(one: "Decision") -> str:
    from schedc.compiler.decisions.decision import number

    cost = "" if one.cost is None else f" ({number(one.cost)} {one.unit})"
    return f"{one.kind}: {one.about}: {one.chosen}{cost}. {one.why}"


def _table(one: "Decision") -> "Table":
    from schedc.compiler.decisions.decision import number

    table = simple_table("instead", one.unit or "cost", "", right=(one.unit or "cost",))
    for other in one.alternatives:
        table.add_row(other.name, "" if other.cost is None else number(other.cost), other.note)
    return table

"""`schedc explain`: why is it so?"""

from typing import Annotated

import typer

from schedc.cli.console import Json, Stages, print_json, to_stdout
from schedc.cli.inspect.opened import refuse_other_rows, subject_of
from schedc.cli.options import Looked, ModelOrFolder, Rows, ScheduleOptions, compiled_folder, with_schedule_options


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True,
        help="Say why: why a schedule is as long as it is, why a model does not fit, why a transfer is not earlier.",
    )
    for command in (step, fit, transfer):
        group.command()(with_schedule_options(command))
    app.add_typer(group, name="explain")


def step(model: Looked, options: ScheduleOptions, rows: Rows = None, json: Json = False) -> None:
    """Say why a step takes as long as it does: bounds, idle HBM by cause, what the core waits for, the critical path.

    Examples:

      schedc explain step out/smollm2-135m

      schedc explain step kimi-k3 --target tpu7x:2x2x4 --set slot_mib=4
    """
    from schedc.inspect.explain.step import explain_step

    subject = subject_of(model, options, rows)
    with Stages().stage("analyse the step"):
        found = explain_step(subject)
    _say(found.to_dict(), found.answer, json)


def fit(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = None, json: Json = False) -> None:
    """Say why a model does not fit the chip and what would; or, if it does, how much is left and what fills it.

    Exit code 0 in both cases: `schedc compile` fails for what does not fit.

    Examples:

      schedc explain fit llama-3.1-70b --devices 1

      schedc explain fit smollm2-135m --rows 16 --set slot_mib=16
    """
    from schedc.inspect.explain.fit import explain_fit, explain_folder
    from schedc.inspect.subject import of_folder
    from schedc.spec.load import load_spec

    folder = compiled_folder(model, options)
    if folder is not None:
        refuse_other_rows(folder, rows)
        found = explain_folder(of_folder(folder))
    else:
        request = options.request(load_spec(model), rows)
        with Stages().stage("schedule, and try what would fit"):
            found = explain_fit(request)
    _say(found.to_dict(), found.answer, json)


def transfer(
    model: Looked,
    name: Annotated[
        str, typer.Argument(metavar="TRANSFER", help="Its source, `source -> target`, or its line in program.ir.")
    ],
    options: ScheduleOptions,
    rows: Rows = None,
    prove: Annotated[
        bool | None,
        typer.Option(
            "--prove/--no-prove",
            help="Ask the proof about every place that is tried.",
            show_default="if that takes seconds",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say why a transfer cannot start earlier: its start is moved up until its meaning or the proof refuses.

    Examples:

      schedc explain transfer smollm2-135m kv_new

      schedc explain transfer out/gpt-oss-20b expert_w_up_0_0 --json

      schedc explain transfer smollm2-135m 139
    """
    from schedc.inspect.explain.transfer import explain_transfer, find_transfers

    subject = subject_of(model, options, rows)
    with Stages().stage("move it up") as say:
        found = [explain_transfer(subject, number, prove, say) for number in find_transfers(subject, name)]
    lines = [line for at, one in enumerate(found) for line in ([""] if at else []) + one.answer]
    _say({"transfers": [one.to_dict() for one in found]}, lines, json)


def _say(data: dict[str, object], lines: list[str], json: bool) -> None:
    if json:
        print_json(data)
        return
    console = to_stdout()
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal)

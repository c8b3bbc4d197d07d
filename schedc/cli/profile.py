"""`schedc profile`: the TPU compiler's cycles of every operation, for predictions that are charged with them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import Json, Stages, grid, print_json, simple_table, to_stdout
from schedc.cli.files import require_suffix, require_writable
from schedc.cli.options import Model, Rows, ScheduleOptions, with_options
from schedc.cli.predict_options import PredictOptions

if TYPE_CHECKING:
    from rich.table import Table

    from schedc.cost.compared import KindCycles


def register(app: typer.Typer) -> None:
    app.command()(with_options(profile, options=ScheduleOptions, assumed=PredictOptions))


def profile(
    model: Model,
    options: ScheduleOptions,
    assumed: PredictOptions,
    rows: Rows = None,
    logits: Annotated[bool, typer.Option("--logits", help="Write the logits out, beside the ids.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the profile: .json, or .yaml.")] = Path(
        "profile.json"
    ),
    signatures: Annotated[
        bool,
        typer.Option("--signatures", help="Write cycles by operation alone, for other orders of the same operations."),
    ] = False,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds the TPU compiler may take.", min=1)] = 600,
    json: Json = False,
) -> None:
    """Compile a model with the TPU compiler and keep the cycles it takes for every operation.

    The schedule is emitted but not proven. `schedc compile --profile FILE` predicts with it, at any clock; another
    order of the same operations is priced by what each is.

    Examples:

      schedc profile smollm2-135m -o smollm2.json

      schedc profile kimi-k3 --target tpu7x:2x2x4 --devices 32 --set slot_mib=4 --signatures -o k3.yaml
    """
    from dataclasses import replace

    from schedc.cli.planned import with_assumed
    from schedc.compiler.pipeline import build
    from schedc.compiler.profile import compile_profile
    from schedc.cost.compared import cycles_by_kind
    from schedc.cost.report import predict
    from schedc.errors import UserError
    from schedc.spec.load import load_spec

    if assumed.profile is not None:
        raise UserError("--profile: this command makes a profile; give it to `schedc compile` or `schedc sweep`")
    require_suffix(output, (".json", ".yaml"), "a profile is written as")
    require_writable(output)
    stages = Stages()
    with stages.stage("schedule"):
        request = options.request(load_spec(model), rows, logits)
        _, program = build(request)
    with stages.stage("TPU compiler") as say:
        made = compile_profile(program, request.target, timeout, say)
    kept = replace(made, order=(), cycles=(), program_sha256=None, phases={}) if signatures else made
    kept.write(output)
    with stages.stage("predict"):
        taken = replace(with_assumed(assumed, options.plan), profile=None)
        machine, load = taken.machine(request.target), taken.load()
        table = predict(program, request.target, machine=machine, load=load)
        priced = predict(program, request.target, machine=replace(machine, pricing=made), load=load)
        kinds = cycles_by_kind(program, made, machine.table)
    if json:
        print_json(
            {
                "profile": str(output),
                "versions": dict(made.versions),
                "signatures": len(made.spreads),
                "step_us": {"by_table": table.step_us, "by_profile": priced.step_us},
                "phases": {phase.name: phase.cycles for phase in priced.phases},
                "kinds": [kind.to_dict() for kind in kinds],
                "seconds": stages.seconds,
            }
        )
        return
    console = to_stdout()
    console.print(_kinds_table(kinds))
    console.print()
    lines = [
        ("priced by the table", f"{table.step_us:,.1f} µs a step"),
        ("by the compiler's", f"{priced.step_us:,.1f} µs a step at {priced.clock_mhz:,.0f} MHz"),
        ("compiler", f"jax {made.versions['jax']}, libtpu {made.versions['libtpu']}"),
        ("seconds", ", ".join(f"{name} {value:.2f}" for name, value in stages.seconds.items())),
    ]
    console.print(grid(lines))
    console.print(f"wrote {output}: {len(made.spreads)} signatures of operations")


def _kinds_table(kinds: "list[KindCycles]") -> "Table":
    numbers = ("places", "times", "cycles", "by the table", "table / cycles")
    table = simple_table("operation", *numbers, right=numbers)
    for kind in kinds:
        ratio = "" if kind.table_over_profile is None else f"{kind.table_over_profile:.2f}"
        table.add_row(kind.name, f"{kind.places}", f"{kind.times:,}", f"{kind.cycles:,}", f"{kind.by_table:,}", ratio)
    return table

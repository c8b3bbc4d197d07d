"""`schedc compile`: a model to a kernel file, with its proof, its check by the TPU compiler, and its prediction."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import Json, Stages, print_json, to_stdout
from schedc.cli.options import Model, Rows, ScheduleOptions, with_options
from schedc.cli.pass_options import PassOptions
from schedc.cli.predict_options import PredictOptions
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.pipeline import Request


def register(app: typer.Typer) -> None:
    app.command()(with_options(compile, options=ScheduleOptions, assumed=PredictOptions, passes=PassOptions))


def compile(
    model: Model,
    options: ScheduleOptions,
    assumed: PredictOptions,
    passes: PassOptions,
    rows: Rows = None,
    logits: Annotated[bool, typer.Option("--logits", help="Write the logits out, beside the ids.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the kernel.", show_default="out/<model>")
    ] = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not ask the TPU compiler: the proof and the prediction only.")
    ] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Also write kernel.export, a portable jax.export artifact.")
    ] = False,
    steps_per_call: Annotated[
        int, typer.Option("--steps-per-call", help="Check the call of so many decode steps, not of one.", min=1)
    ] = 1,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds the TPU compiler may take.", min=1)] = 600,
    json: Json = False,
) -> None:
    """Compile a model into one TPU kernel: schedule it, prove it safe, check it with the TPU compiler.

    Writes kernel.py, manifest.json, program.ir, report.json, the log of decisions (decisions.json and .md) and, of the
    TPU compiler's cycles, profile.json into one folder, all or nothing. An earlier folder is replaced.

    Examples:

      schedc compile smollm2-135m

      schedc compile qwen3-8b --rows 16 --context 8192 --policy ring --set depth=6 -o out/qwen

      schedc compile ./my_model.yaml --target v6e --policy ./my_policy.py:late_cache --no-check --json

      schedc compile smollm2-135m --no-check --print-after schedule --time-passes 2> passes.txt
    """
    from dataclasses import replace

    from schedc.cli.compile_view import show
    from schedc.cli.planned import with_assumed
    from schedc.compiler.output import KERNEL, PROFILE, new_output, report, write_program, write_report
    from schedc.compiler.passes import COMPILE_PASSES
    from schedc.compiler.pipeline import compile_model
    from schedc.cost.report import predict
    from schedc.spec.load import load_spec

    stages = Stages()
    with stages.stage("read the spec"):
        request = options.request(load_spec(model), rows, logits)
        taken = with_assumed(assumed, options.plan)
        machine, load = taken.machine(request.target), taken.load()
    _refuse_steps_that_wait(request, steps_per_call)
    folder = output or Path("out") / request.spec.name
    with new_output(folder) as draft:
        with passes.watch(COMPILE_PASSES, stages.say) as watch, stages.stage("schedule and prove"):
            compiled = compile_model(request, watch, machine, load)
        write_program(compiled, draft)
        checked = profiled = None
        if not no_check:
            from schedc.compiler.check import check, require_agreement

            with stages.stage("TPU compiler") as say:
                checked = check(compiled, draft / KERNEL, timeout, say, steps_per_call)
            require_agreement(checked)
            checked.profile.write(draft / PROFILE)
            with stages.stage("predict by the compiler's cycles"):
                priced = replace(machine, pricing=checked.profile)
                profiled = predict(compiled.program, request.target, machine=priced, load=load)
        if export:
            _export(draft, request.target.topology_name, request.target.devices_used, timeout, stages)
        verdict = None if checked is None else checked.to_dict()
        write_report(compiled, verdict, draft, profiled)
        files = sorted(path.name for path in draft.iterdir())
    if json:
        result = {"folder": str(folder), "files": files, "seconds": stages.seconds}
        print_json(result | report(compiled, verdict, profiled))
    else:
        show(to_stdout(), compiled, checked, profiled, stages.seconds, folder, files)


def _refuse_steps_that_wait(request: "Request", steps: int) -> None:
    """Raises UserError for several steps a call of which each needs to know what was accepted of the one before."""
    if steps > 1 and request.shape.rows_are == "tokens":
        raise UserError(
            f"--rows-are tokens: what a step accepts is known behind it, so not {steps} steps a call; use 1"
        )


def _export(draft: Path, topology: str, devices: int, timeout: float, stages: Stages) -> None:
    from schedc.backends.pallas.aot.export import export_kernel
    from schedc.compiler.output import EXPORT, KERNEL

    with stages.stage("export"):
        artifact = export_kernel(draft / KERNEL, topology, devices, timeout=timeout)
    (draft / EXPORT).write_bytes(artifact)

"""`schedc pack`: weights into the layout of a kernel."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from schedc.cli.console import Json, print_json
from schedc.cli.options import ModelOrFolder, ScheduleOptions, compiled_folder, with_schedule_options
from schedc.cli.weights import WeightsFile, byte_progress, weights_path


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(pack))


def pack(
    model: ModelOrFolder,
    options: ScheduleOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    weights_file: WeightsFile = None,
    json: Json = False,
) -> None:
    """Pack weights into the layout a kernel reads: that of a compiled folder, or of a model with these options.

    An interrupted run leaves no FILE, but FILE.part and FILE.journal, with which the next run goes on.

    Examples:

      schedc pack out/smollm2-135m -o smollm2.packed

      schedc pack qwen3-8b --weights-file ~/models/qwen3-8b -o qwen.packed
    """
    from schedc.compiler.pipeline import build
    from schedc.spec.load import load_spec
    from schedc.weights.head_order import for_kernel
    from schedc.weights.layout import layouts_hash
    from schedc.weights.open import open_weights
    from schedc.weights.pack import pack as write

    folder = compiled_folder(model, options)
    if folder is not None:
        spec, layouts = folder.spec, folder.layouts
    else:
        request = options.request(load_spec(model))
        spec, layouts = request.spec, build(request)[0].layouts
    source = open_weights(weights_path(spec, weights_file), spec)
    began = perf_counter()
    with byte_progress(f"packing {spec.name}") as progress:
        write(layouts, for_kernel(source, spec), output, progress)
    seconds, size = perf_counter() - began, output.stat().st_size
    if json:
        print_json({"file": str(output), "bytes": size, "layout": layouts_hash(layouts), "seconds": round(seconds, 3)})
    else:
        typer.echo(f"wrote {output}: {size:,} bytes, {len(layouts)} arrays, in {seconds:.1f} s")

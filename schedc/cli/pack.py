"""`schedc pack`: weights into the layout of a kernel."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from schedc.cli.console import Json, print_json
from schedc.cli.options import ModelOrFolder, ScheduleOptions, compiled_folder, with_schedule_options
from schedc.cli.weights import Rounding, WeightsFile, byte_progress, opened, weights_path
from schedc.errors import UserError


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(pack))


def pack(
    model: ModelOrFolder,
    options: ScheduleOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file to write; for several devices w.packed becomes w.0-of-8.packed and so on."
        ),
    ],
    weights_file: WeightsFile = None,
    rounding: Rounding = None,
    device: Annotated[
        str, typer.Option("--device", help="The devices to pack for: all, one as in 3, or some as in 8-15 or 0,2,4.")
    ] = "all",
    json: Json = False,
) -> None:
    """Pack weights into the layout a kernel reads: that of a compiled folder, or of a model with these options.

    Every device has a file of its own, and a host packs those of its devices. An interrupted run leaves no FILE, but
    FILE.part and FILE.journal, with which the next run goes on.

    Examples:

      schedc pack out/smollm2-135m -o smollm2.packed

      schedc pack qwen3-8b --weights int8 --round nearest --weights-file ~/models/qwen3-8b -o qwen.packed

      schedc pack out/llama-3.1-70b --device 8-15 --weights-file ~/models/llama -o llama.packed
    """
    from schedc.compiler.pipeline import build
    from schedc.spec.load import load_spec
    from schedc.weights.head_order import for_kernel
    from schedc.weights.layout import layouts_hash, on_device
    from schedc.weights.pack import pack as write

    folder = compiled_folder(model, options)
    if folder is not None:
        spec, shape, layouts = folder.spec, folder.shape, folder.layouts
    else:
        request = options.request(load_spec(model))
        spec, shape, layouts = request.spec, request.shape, build(request)[0].layouts
    devices = parse_devices(device, shape.devices)
    source = opened(weights_path(spec, weights_file), spec, rounding)
    files = []
    for number in devices:
        mine = [on_device(layout, number) for layout in layouts]
        path = device_file(output, number, shape.devices)
        began = perf_counter()
        what = f"packing {spec.name}" + (f" for device {number}" if shape.devices > 1 else "")
        with byte_progress(what) as progress:
            write(mine, for_kernel(source, spec), path, progress)
        seconds, size = perf_counter() - began, path.stat().st_size
        facts = {"bytes": size, "layout": layouts_hash(mine), "seconds": int(seconds * 1000) / 1000}
        files.append({"device": number, "file": str(path)} | facts)
        if not json:
            typer.echo(f"wrote {path}: {size:,} bytes, {len(mine)} arrays, in {seconds:.1f} s")
    if json:
        print_json({"files": files})


def device_file(output: Path, device: int, devices: int) -> Path:
    """`w.packed` for the only device, `w.3-of-8.packed` for one of several."""
    return output if devices == 1 else output.with_name(f"{output.stem}.{device}-of-{devices}{output.suffix}")


def parse_devices(text: str, devices: int) -> list[int]:
    """`all`, `3`, `8-15` or `0,2,4`. Raises UserError for what is none of these or no device of the kernel."""
    if text == "all":
        return list(range(devices))
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UserError(f"--device {text}: must be all, or like 3, 8-15 or 0,2,4")
        if dash and int(last) < int(first):
            raise UserError(f"--device {text}: {part} ends before it begins; write {last}-{first}")
        found |= dict.fromkeys(range(int(first), int(last if dash else first) + 1))
    if any(number >= devices for number in found):
        raise UserError(f"--device {text}: the kernel has the devices 0 to {devices - 1}")
    return list(found)

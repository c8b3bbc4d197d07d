"""`schedc import`: a Hugging Face config.json to a model spec."""

from pathlib import Path
from typing import Annotated

import typer

from schedc.cli.console import Json, print_json


def register(app: typer.Typer) -> None:
    app.command("import")(import_config)


def import_config(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A Hugging Face config.json.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The spec file to write.", show_default="printed")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the model.", show_default="that of the file or its folder")
    ] = None,
    json: Json = False,
) -> None:
    """Write the model spec of a Hugging Face config.json. What a spec cannot express is refused by its key.

    What it does without, such as a vision tower, is said on stderr and in the spec's first lines.

    Example:

      schedc import qwen3-8b/config.json -o qwen3-8b.yaml && schedc compile ./qwen3-8b.yaml
    """
    from schedc.cli.files import write_text
    from schedc.spec.dump import dump_spec
    from schedc.spec.importers.import_config import import_with_report

    imported = import_with_report(config, name)
    spec = imported.spec
    text = dump_spec(spec, config.name, imported.left_out)
    for line in imported.left_out:
        typer.echo(f"note: {line}", err=True)
    if output is not None:
        write_text(output, text)
    if json:
        print_json(spec.model_dump(mode="json", exclude_defaults=True))
    elif output is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"wrote {output}: {spec.num_layers} layers, {sum(spec.parameter_counts().values()):,} parameters")

"""`schedc models`: the specs that come with schedc."""

from typing import TYPE_CHECKING, Any

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stdout

if TYPE_CHECKING:
    from schedc.spec.model import ModelSpec


def register(app: typer.Typer) -> None:
    app.command()(models)


def models(json: Json = False) -> None:
    """List the models that come with schedc. A spec file of your own works everywhere a name does.

    Example:

      schedc models --json
    """
    from schedc.spec.load import list_models, load_spec
    from schedc.weights.fetch import packaged_weights

    specs = [load_spec(name) for name in list_models()]
    if json:
        print_json([_entry(spec, spec.name in packaged_weights()) for spec in specs])
        return
    numbers = ("parameters", "layers", "hidden", "heads", "kv heads", "head dim", "vocab", "context")
    table = simple_table("model", *numbers, "weights", right=numbers)
    for spec in specs:
        entry = _entry(spec, spec.name in packaged_weights())
        sizes = ("–" if entry[key] is None else f"{entry[key]:,}" for key in list(entry)[2:-1])
        weights = "fetched" if entry["weights_fetched"] else "from a file"
        table.add_row(spec.name, f"{entry['parameters'] / 1e6:,.1f} M", *sizes, weights)
    to_stdout().print(table)


def _entry(spec: "ModelSpec", fetched: bool) -> dict[str, Any]:
    """Heads are those of the first layer that attends, in models where others keep a state."""
    from schedc.weights.cache import HEADS_AND_SIDES

    mixers = [block.mixer for run in spec.layers for block in run.pattern]
    mixer = next((mixer for mixer in mixers if mixer.kind in HEADS_AND_SIDES), None)
    cached = None if mixer is None else HEADS_AND_SIDES[mixer.kind](mixer)[0]
    return {
        "name": spec.name,
        "parameters": sum(spec.parameter_counts().values()),
        "layers": spec.num_layers,
        "hidden": spec.hidden,
        "heads": getattr(mixer, "heads", None),
        "kv_heads": cached,
        "head_dim": getattr(mixer, "head_dim", None),
        "vocab": spec.vocab,
        "max_position": spec.max_position,
        "weights_fetched": fetched,
    }

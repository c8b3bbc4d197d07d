"""What `schedc verify --dump PHASE` shows."""

from typing import TYPE_CHECKING, Any

from schedc.cli.console import simple_table, to_stdout
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.interpret import Run
    from schedc.compiler.pipeline import Request

ALL = "all"
_MOST = 20


def layers_of(request: "Request", phase: str) -> tuple[int, ...]:
    """The layers of the shrunk model that have the phase; of one behind the layers, the logits. Raises UserError."""
    from dataclasses import replace

    from schedc.compiler.dump import LOGITS
    from schedc.compiler.shrink import shrink
    from schedc.ir.program import Phase, walk

    every = tuple(range(request.spec.num_layers))
    small = shrink(replace(request, shape=replace(request.shape, taps=every)))
    names = [op.name for op in walk(small.schedule.program.body) if isinstance(op, Phase)]
    layers = [(at.run, at.place, at.layer) for at in small.spec.iter_layers()]
    if phase == ALL:
        return (*(layer for _, _, layer in layers), LOGITS)
    if phase not in names:
        raise UserError(f"--dump {phase}: the shrunk model has no such phase; it has {', '.join(dict.fromkeys(names))}")
    places = sorted({(run, place) for run, place, _ in layers})
    before = sum(1 for name in names[: names.index(phase)] if name == "tap" or name.startswith("tap_"))
    if before >= len(places):
        return (LOGITS,)
    return tuple(layer for run, place, layer in layers if (run, place) == places[before])


def dumped(run: "Run", layers: tuple[int, ...]) -> dict[str, Any]:
    """Of one run what was compared of these layers: the first step with a difference, in the order of computation."""
    found = [one for one in run.dump if one["layer"] in layers]
    wrong = [one for one in found if one["element"] is not None]
    step = wrong[0]["step"] if wrong else 0
    return {"run": run.name, "first": wrong[0] if wrong else None, "compared": [o for o in found if o["step"] == step]}


def show_dump(run: "Run", layers: tuple[int, ...]) -> None:
    data, console = dumped(run, layers), to_stdout()
    first = data["first"]
    console.print()
    if first is None:
        console.print(f"{data['run']}: nothing differs in what these layers keep and leave", soft_wrap=True)
    else:
        where = _layer(first["layer"])
        console.print(
            f"{data['run']}: first difference in step {first['step']}: {where}, {first['what']} of row {first['row']}, "
            f"element {first['element']}: {first['got']:.6g}, the reference says {first['expected']:.6g}",
            soft_wrap=True,
        )
    table = simple_table("layer", "what", "row", "largest", "limit", "first element", right=("row", "largest", "limit"))
    rows = sorted(data["compared"], key=lambda one: one["element"] is None)
    for one in rows[:_MOST]:
        element = "" if one["element"] is None else str(one["element"])
        table.add_row(
            _layer(one["layer"]), one["what"], str(one["row"]), f"{one['largest']:.2g}", f"{one['limit']:.2g}", element
        )
    console.print(table)


def _layer(layer: int) -> str:
    return "behind the layers" if layer < 0 else f"layer {layer}"

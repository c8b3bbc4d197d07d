"""What `schedc verify --dump PHASE` shows."""

from typing import TYPE_CHECKING, Any

from schedc.cli.console import simple_table, to_stdout

if TYPE_CHECKING:
    from schedc.compiler.interpret import Run

_MOST = 20


def show_dump(run: "Run", phases: tuple[str, ...]) -> None:
    from schedc.compiler.dumped import dumped, where_of

    data, console = dumped(run, phases), to_stdout()
    first, found = data["first"], data["compared"]
    console.print()
    what = f"phase {phases[0]} leaves" if len(phases) == 1 else f"{len(phases)} phases leave"
    if first is None:
        shown = sorted(found, key=lambda one: -one["ratio"])[:_MOST]
        console.print(
            f"{data['run']}: nothing differs in what {what} in {data['steps']} steps of the shrunk model; of "
            f"{len(found)} comparisons of the first step the {len(shown)} nearest to their limits:",
            soft_wrap=True,
        )
    else:
        shown = [one for one in found if where_of(one) == where_of(first)]
        layer = "outside of the layers" if first["layer"] is None else f"of layer {first['layer']}"
        console.print(
            f"{data['run']}: the first difference of the shrunk model is in step {first['step']} in phase "
            f"{first['phase']} {layer}; {len(found) - len(shown)} comparisons before it agree, those behind it follow "
            "from it:",
            soft_wrap=True,
        )
        shown = sorted(shown, key=lambda one: one["element"] is None)[:_MOST]
    right = ("row", "ours", "reference", "difference", "limit", "of limit")
    table = simple_table("layer", "phase", "value", "device", "row", "element", *right[1:], right=right)
    for one in shown:
        table.add_row(
            *(_text(one[name]) for name in ("layer", "phase", "what", "device", "row", "element")),
            *("" if one[name] is None else f"{one[name]:.5g}" for name in ("got", "expected")),
            *(f"{one[name]:.2g}" for name in ("largest", "limit")),
            f"{one['ratio']:.2g}",
        )
    console.print(table)
    for one in found:
        if one["note"]:
            layer = f" of layer {one['layer']}" if one["layer"] is not None else ""
            console.print(f"phase {one['phase']}{layer}, row {one['row']}: {one['note']}; taken as the kernel has it")


def _text(field: Any) -> str:
    return "" if field is None else str(field)

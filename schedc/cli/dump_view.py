"""What `schedc verify --dump PHASE` shows."""

from typing import TYPE_CHECKING, Any

from schedc.cli.console import simple_table, to_stdout
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.interpret import Run
    from schedc.compiler.pipeline import Request

ALL = "all"
_MOST = 20


def phases_to_dump(request: "Request", phase: str) -> tuple[str, ...]:
    """The phases of the shrunk model, which is what is interpreted, that are asked for.

    Raises UserError for one that it does not have, or with which no value of the reference can be compared.
    """
    from schedc.compiler.recording import phases_of
    from schedc.compiler.shrink import shrink

    every = [found for _, found in phases_of(shrink(request).schedule.graph)]
    telling = tuple(found.name for found in every if any(not value.begins for value in found.values))
    if phase == ALL:
        return telling
    if phase in telling:
        return (phase,)
    why = (
        "leaves nothing that the reference has: it moves what others make"
        if phase in (found.name for found in every)
        else "the shrunk model, which is what is interpreted, has no such phase"
    )
    raise UserError(
        f"--dump {phase}: {why}; those that can be compared are {', '.join(telling)}, or all of them: {ALL}"
    )


def dumped(run: "Run", phases: tuple[str, ...]) -> dict[str, Any]:
    """Of one run what was compared, in the order of execution: of the first step in which something differs up to the
    phase that does, as what is behind it follows from it; of the first step if nothing does."""
    first = next((one for one in run.dump if one["element"] is not None), None)
    step = 0 if first is None else first["step"]
    found = [one for one in run.dump if one["step"] == step]
    if first is not None:
        last = max(place for place, one in enumerate(found) if _where(one) == _where(first))
        found = found[: last + 1]
    steps = len({one["step"] for one in run.dump})
    return {"run": run.name, "phases": list(phases), "steps": steps, "first": first, "compared": found}


def show_dump(run: "Run", phases: tuple[str, ...]) -> None:
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
        shown = [one for one in found if _where(one) == _where(first)]
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


def _where(one: dict[str, Any]) -> tuple[str, int | None]:
    return one["phase"], one["layer"]


def _text(field: Any) -> str:
    return "" if field is None else str(field)

"""A plan's file as options: what it says of its step is taken where the command line says nothing else."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schedc.errors import SchedcError, TargetError, UserError

if TYPE_CHECKING:
    from schedc.cli.options import ScheduleOptions
    from schedc.cli.predict_options import PredictOptions
    from schedc.compiler.pipeline import Request
    from schedc.schedule.plan_file import PlanFile

_FREE = (
    "rows_are", "context", "weights", "weights_of", "kv", "latent_cache", "window_cache", "wire", "collective", "forms",
    "taps", "placement",
)  # fmt: skip
"""What may be asked for in another way than the plan was found for; it then is another step, and said to be."""


@dataclass(frozen=True)
class Planned:
    """`options` without a plan, as it says; `others`: "--wire f32 (the plan has bf16)"."""

    text: str
    file: "PlanFile"
    options: "ScheduleOptions"
    rows: int
    others: tuple[str, ...]
    said: frozenset[str]
    """Fields of the options that the file says, and the command line does not."""

    def named(self, field: str) -> str:
        """Where the value of a field of the options was asked for."""
        from schedc.cli.options import option_of

        return f"plan {self.text}: {field}" if field in self.said else option_of(field)

    def warn(self, request: "Request") -> None:
        """On stderr, with both times, if another step is asked for than the plan was found for."""
        import typer

        if not self.others:
            return
        found = "" if self.file.predicted_us is None else f": found at {self.file.predicted_us:,.1f} µs"
        found += f"; with {', '.join(self.others)} {_predicted(request, self.file)}"
        typer.echo(
            f"warning: plan {self.text} was found for another step{found}; `schedc explore {self.file.model} --policy "
            "search` finds one for this",
            err=True,
        )


def planned(options: "ScheduleOptions", text: str, model: str, rows: int | None) -> Planned:
    """Raises UserError for a plan of another model, target, or number of devices or rows."""
    from schedc.schedule.plan_file import find_plan, list_plans, read_plan
    from schedc.schedule.registry import SHIPPED

    path = find_plan(text)
    file = read_plan(path)
    if options.policy is not None or options.settings:
        raise UserError("--plan says all that a policy says; leave --policy and --set out")
    same = options.target is not None and _target_name(options.target) == _target_name(file.target)
    asked = {"model": model, "target": None if same else options.target, "devices": options.devices, "rows": rows}
    wrong = [f"{name} {getattr(file, name)}, not {value}" for name, value in asked.items()
             if value is not None and getattr(file, name) != value]  # fmt: skip
    if wrong:
        raise UserError(f"plan {path} is for {', '.join(wrong)}; `schedc explore {model} --policy search` makes one")
    said = _said(file)
    given = {name: getattr(options, name) for name in _FREE if getattr(options, name) is not None}
    taken = replace(
        options,
        plan=None,
        policy=f"{SHIPPED}{text}" if text in list_plans() else text,
        target=options.target or file.target,
        devices=file.devices,
        **{**said, **given},
    )
    own = frozenset(said.keys() - given.keys())
    return Planned(text, file, taken, file.rows, tuple(_others(given, said, file)), own)


def _target_name(text: str) -> str:
    """As a plan has it: with the topology, and the name alone of a chip file of the user's own."""
    from schedc.target.target import parse_target

    try:
        return parse_target(text, 1).name
    except TargetError:
        return text


Assumed = TypeVar("Assumed", bound="PredictOptions")


def with_assumed(assumed: Assumed, text: str | None) -> Assumed:
    """What the prediction of a plan has assumed, where the command line says nothing. Raises UserError."""
    from dataclasses import fields

    import typer

    from schedc.cost.profile import read_profile
    from schedc.schedule.plan_file import find_plan, read_plan

    file = None if text is None else read_plan(find_plan(text))
    if file is None or file.assumed is None:
        return assumed
    unsaid = [field.name for field in fields(assumed) if getattr(assumed, field.name) is None]
    found = {name: getattr(file.assumed, name) for name in unsaid}
    if found.get("profile") is not None:
        try:
            read_profile(found["profile"])
        except UserError as error:
            typer.echo(
                f"warning: plan {text} was priced by {found['profile']}, which cannot be read ({error}): priced by the "
                "fitted formulas",
                err=True,
            )
            found["profile"] = None
    return replace(assumed, **found)


def tell_of_plan(error: UserError, text: str) -> None:
    """Add a last line of what the plan says, where the message does not name it: a value of it may be at fault."""
    from schedc.schedule.plan_file import find_plan, read_plan

    try:
        path = find_plan(text)
        file = read_plan(path)
    except UserError:
        return
    if not any(named in str(error) for named in (text, str(path), "--plan")):
        assumed = {} if file.assumed is None else dict(file.assumed)
        says = {"target": file.target, "devices": file.devices, "rows": file.rows, **_said(file), **assumed}
        words = (f"{name} {_text(value)}" for name, value in says.items() if value is not None and name != "placement")
        error.add_note(f"plan {text} says {', '.join(words)}")


def _said(file: "PlanFile") -> dict[str, Any]:
    """What a file says, as options. Of a file of version 1 nothing but its rows and context."""
    found = {
        "rows_are": file.rows_are,
        "context": file.context,
        "weights": file.weights,
        "weights_of": file.weights_of,
        "kv": file.kv,
        "latent_cache": file.latent_cache,
        "window_cache": file.window_cache,
        "wire": file.wire,
        "collective": file.collective,
        "forms": [f"{stored}={form}" for stored, form in file.forms.items()] or None,
        "taps": ",".join(map(str, file.taps)) or None,
        "placement": file.placement,
    }
    return {name: value for name, value in found.items() if value is not None}


def _others(given: dict[str, Any], said: dict[str, Any], file: "PlanFile") -> list[str]:
    """Of a file of version 1 it is not known what else it was found for."""
    from schedc.cli.options import option_of

    found = []
    for name, value in given.items():
        if file.version == 1 and name not in said:
            continue
        if _plain(name, value) != _plain(name, said.get(name)):
            had = said.get(name)
            shown = "none" if had is None else "its own" if name == "placement" else _text(had)
            found.append(f"{option_of(name)} {_text(value)} (the plan has {shown})")
    return found


def _plain(name: str, value: Any) -> Any:
    """To compare: a file of rules as the rules, sites in any order."""
    if isinstance(value, Path):
        from schedc.placement.load import load_rules

        return load_rules(value)
    if name in ("wire", "collective", "weights_of") and value is not None:
        return sorted(part.strip() for part in str(value).split(","))
    return value


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _predicted(request: "Request", file: "PlanFile") -> str:
    """Of the step that is asked for, under what the plan's prediction assumed."""
    from schedc.cli.predict_options import PredictOptions
    from schedc.compiler.pricing import schedule
    from schedc.cost.simulate import Stuck, inputs_of, simulate

    assumed = PredictOptions() if file.assumed is None else PredictOptions(**dict(file.assumed))
    try:
        program = schedule(request.spec, request.shape, request.target, request.policy, request.settings).program
        given = inputs_of(program, None, assumed.load())
        step_ns = simulate(program, assumed.machine(request.target), given).step_ns
    except (SchedcError, Stuck) as error:
        return f"it cannot be predicted: {str(error).partition(chr(10))[0]}"
    return f"{step_ns / 1e3:,.1f} µs"

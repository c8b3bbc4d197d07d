"""The options that say how a model is compiled, once for all subcommands that compile one."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from schedc.cli import completion
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.output import Output
    from schedc.compiler.pipeline import Request
    from schedc.spec.model import ModelSpec
    from schedc.weights.layout import WordDtype


StoredFormat = Literal[
    "bf16", "f32", "int8", "fp8", "fp8_block128", "int4_g32", "int4_g64", "int4_g128", "mxfp4", "nvfp4"
]
CacheFormat = Literal["bf16", "f32", "fp8"]
LatentCache = Literal["absorbed", "expanded"]
WindowCache = Literal["context", "ring"]
RowsAre = Literal["sequences", "tokens"]
DEFAULT_CONTEXT = 4096
DEFAULT_TARGET, LARGER_TARGET = "tpu7x:2x2x1", "tpu7x:2x2x4"
"""The second for what the first does not hold."""
_PANEL = "Schedule"

Named = Callable[[str], str]
"""Where the value of a field of `ScheduleOptions` was asked for, for messages: `--wire`, or `plan k3.yaml: wire`."""


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        autocompletion=completion.models,
        help="A name from `schedc models`, or a spec file such as ./my_model.yaml.",
    ),
]
ModelOrFolder = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|FOLDER",
        autocompletion=completion.models,
        help="A name from `schedc models`, a spec file, or a folder written by `schedc compile`.",
    ),
]

Looked = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|FOLDER|FILE.ir",
        autocompletion=completion.models,
        help="A name from `schedc models`, a spec file, a folder written by `schedc compile`, or a program in the text "
        "form; `-` reads one from stdin.",
    ),
]
"""What has an order of operations to look at."""


Rows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        help="Sequences decoded in one step, or tokens of one (--rows-are), 1 to 16.",
        show_default="1, or those of the plan",
    ),
]


def _option(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **settings)


@dataclass(frozen=True)
class ScheduleOptions:
    """What a model is compiled for, and how."""

    target: Annotated[
        str | None,
        _option(
            "--target",
            autocompletion=completion.targets,
            help="Chip and topology, as in tpu7x:2x2x1; or a chip file of your own, ./my_chip.yaml.",
            show_default=f"{DEFAULT_TARGET}, or {LARGER_TARGET} if only that holds the model",
        ),
    ] = None
    devices: Annotated[
        int | None,
        _option(
            "--devices",
            help="Devices of the target that run the kernel.",
            show_default="the fewest whose HBM holds the model",
        ),
    ] = None
    placement: Annotated[
        Path | None,
        _option(
            "--placement",
            metavar="FILE",
            help="YAML with rules of the placement: attention, dense, experts, head, kv.",
            show_default="by the rules that `schedc inspect placement` shows",
        ),
    ] = None
    rows_are: Annotated[
        RowsAre | None,
        _option(
            "--rows-are",
            help="What the rows of a step are: sequences, or consecutive tokens of one sequence (to verify a draft).",
            show_default="sequences",
        ),
    ] = None
    context: Annotated[
        int | None,
        _option(
            "--context",
            help="Tokens a sequence may have.",
            show_default=f"{DEFAULT_CONTEXT}, or as many as the model knows",
        ),
    ] = None
    policy: Annotated[
        str | None,
        _option(
            "--policy",
            autocompletion=completion.policies,
            help="The order of the transfers: a name, or ./file.py:function for your own.",
            show_default="ring",
        ),
    ] = None
    plan: Annotated[
        str | None,
        _option(
            "--plan",
            metavar="FILE",
            autocompletion=completion.plans,
            help="A plan as `schedc explore -o` writes it, or the name of one that comes with schedc. What it was found"
            " for is taken from it where it is not given.",
            show_default="by the policy",
        ),
    ] = None
    settings: Annotated[
        list[str] | None, _option("--set", metavar="KEY=VALUE", help="A setting of the policy; may be repeated.")
    ] = None
    weights: Annotated[
        StoredFormat | None,
        _option(
            "--weights",
            help="Format of the weights, but for families that the spec gives one of their own.",
            show_default="as the spec says",
        ),
    ] = None
    weights_of: Annotated[
        str | None,
        _option(
            "--weights-of",
            metavar="FAMILY=FORMAT,…",
            help="Formats of single families, as in experts=nvfp4: of attention, decay, dense, experts, shared, router,"
            " head or embedding.",
            show_default="as the spec says",
        ),
    ] = None
    kv: Annotated[
        CacheFormat | None, _option("--kv", help="Format of the KV cache.", show_default="as the spec says")
    ] = None
    latent_cache: Annotated[
        LatentCache | None,
        _option(
            "--latent-cache",
            help="What latent attention keeps of a token: its latent (absorbed), or keys and values of every head.",
            show_default="as the spec says",
        ),
    ] = None
    window_cache: Annotated[
        WindowCache | None,
        _option(
            "--window-cache",
            help="Room in the caches of layers with a window or chunks: the whole context, or a ring of what is in"
            " sight.",
            show_default="as the spec says",
        ),
    ] = None

    collective: Annotated[
        str | None,
        _option(
            "--collective",
            metavar="NAME",
            help="How devices sum what each has a part of: one_shot, two_phase, hierarchical or ring; or by site, as in"
            " mixer=one_shot,feed_forward=ring,latent=fused.",
            show_default="the quickest by the chip's figures",
        ),
    ] = None
    forms: Annotated[
        list[str] | None,
        _option(
            "--form",
            metavar="FORMAT=FORM",
            help="How dots take weights of a format, as in mxfp4=dequantised; may be repeated.",
            show_default="the form of the fewest cycles",
        ),
    ] = None
    taps: Annotated[
        str | None,
        _option(
            "--taps",
            metavar="LAYERS",
            help="Layers, counted from 0, whose residual stream is written out for a draft model, as in 23,47.",
        ),
    ] = None
    wire: Annotated[
        str | None,
        _option(
            "--wire",
            metavar="FORMAT",
            help="What devices send each other to be summed, bf16 or f32; or by site, as in mixer=bf16,latent=f32.",
            show_default="f32",
        ),
    ] = None

    def request(
        self, spec: "ModelSpec", rows: int | None = None, logits: bool = False, named: Named | None = None
    ) -> "Request":
        """Raises UserError for bad values. Of a plan that was found for another step it is warned on stderr."""
        from schedc.compiler.pipeline import Request
        from schedc.compiler.placement import smallest_target
        from schedc.lower.collectives.choose import communication_for
        from schedc.lower.graph import StepShape
        from schedc.lower.step import refuse_what_is_not_lowered
        from schedc.placement.load import load_rules
        from schedc.placement.rules import PlacementRules
        from schedc.schedule.registry import DEFAULT_POLICY, find_policy, is_plan
        from schedc.spec.latent_cache import with_latent_cache
        from schedc.spec.window_cache import with_window_cache
        from schedc.weights.families import refuse_unused_formats

        if self.plan is not None:
            from schedc.cli.planned import planned

            found = planned(self, self.plan, spec.name, rows)
            request = found.options.request(spec, found.rows, logits, found.named)
            found.warn(request)
            return request
        policy = self.policy or DEFAULT_POLICY
        if named is None and is_plan(policy):
            raise UserError(f"--policy {policy}: is a plan, which says all of its step; give it by --plan")
        named = named or option_of
        if self.weights_of is not None:
            spec = with_weights_of(named("weights_of"), spec, self.weights_of)
        refuse_unused_formats(spec)
        rows_are = self.rows_are or "sequences"
        rows = 1 if rows is None else rows
        targets = (DEFAULT_TARGET, LARGER_TARGET) if self.target is None else (self.target,)
        if self.weights is not None:
            quantization = spec.quantization.model_copy(update={"weights": self.weights})
            spec = spec.model_copy(update={"quantization": quantization})
        if self.kv is not None:
            spec = spec.model_copy(update={"kv": spec.kv.model_copy(update={"dtype": self.kv})})
        if self.latent_cache is not None:
            spec = with_latent_cache(spec, self.latent_cache)
        if self.window_cache is not None:
            spec = with_window_cache(spec, self.window_cache)
        find_policy(policy)
        context = min(DEFAULT_CONTEXT, spec.max_position) if self.context is None else self.context
        rules = self.placement or PlacementRules()
        rules = load_rules(rules) if isinstance(rules, Path) else rules
        alone = StepShape(rows, context, placement=rules, rows_are=rows_are)
        target = smallest_target(spec, alone, targets, self.devices)
        taps = parse_taps(named("taps"), self.taps)
        asked = StepShape(rows, context, logits, target.devices_used, rules, rows_are=rows_are, taps=taps)
        refuse_what_is_not_lowered(spec, asked)
        collective, collectives = parse_sites(named("collective"), self.collective)
        wire, wires = parse_sites(named("wire"), self.wire)
        formats = {site: _wire(named("wire"), value) for site, value in wires.items()}
        whole = None if wire is None else _wire(named("wire"), wire)
        talk = communication_for(spec.hidden, rows, target, collective, whole, collectives, formats, named)
        shape = replace(asked, communication=talk, forms=parse_forms(named("forms"), self.forms))
        return Request(spec, target, shape, policy, parse_settings(self.settings or []))

    def given(self) -> list[str]:
        """The options that are not at their defaults."""
        return [option_of(field.name) for field in fields(self) if getattr(self, field.name) != field.default]


def option_of(field: str) -> str:
    """The option of a field of `ScheduleOptions`: "weights_of" → "--weights-of"."""
    names = {"settings": "set", "forms": "form"}
    return f"--{names.get(field, field).replace('_', '-')}"


def compiled_folder(text: str, options: ScheduleOptions) -> "Output | None":
    """The folder that `text` names, None if it names a model. Raises UserError for options that come too late."""
    from schedc.compiler.output import read_output
    from schedc.spec.load import list_models

    if not Path(text).is_dir() or text in list_models():
        return None
    if options.given():
        raise UserError(f"{text}: has been compiled; {', '.join(options.given())} cannot be given for it")
    return read_output(Path(text))


def parse_sites(asked: str, text: str | None) -> tuple[str | None, dict[str, str]]:
    """`ring` → ("ring", {}); `mixer=ring,latent=fused` → (None, {"mixer": "ring", "latent": "fused"}), and both.

    Raises UserError for what is neither, or is said twice. `asked` is where it was: an option, or a key of a file.
    """
    default, sites = None, {}
    for part in [] if text is None else text.split(","):
        site, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            site, value = "", site
        if not value or (equals and not site) or site in sites or (not site and default is not None):
            raise UserError(f"{asked} {text}: must be one name, or names by site, as in mixer=NAME,latent=NAME")
        if site:
            sites[site] = value
        else:
            default = value
    return default, sites


def with_weights_of(asked: str, spec: "ModelSpec", text: str) -> "ModelSpec":
    """`experts=nvfp4` → the model with such experts. Raises UserError for what is no family or no format of it."""
    from schedc.spec.storage import Quantization
    from schedc.validation import validate

    default, formats = parse_sites(asked, text)
    if default is not None:
        raise UserError(f"{asked} {text}: must name a family, as in experts={default}; --weights is of all")
    made, faults = validate(Quantization, {**spec.quantization.model_dump(mode="json"), **formats})
    if made is None:
        raise UserError("\n".join(f"{asked} {text}: {fault}" for fault in faults))
    return spec.model_copy(update={"quantization": made})


def _wire(asked: str, text: str) -> "WordDtype":
    """Raises UserError for what is no format of a wire."""
    match text:
        case "bf16":
            return "bf16"
        case "f32":
            return "f32"
    raise UserError(f"{asked} {text}: must be bf16 or f32")


def parse_taps(asked: str, text: str | None) -> tuple[int, ...]:
    """`23,47` → (23, 47). Raises UserError for what is no number."""
    if text is None:
        return ()
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise UserError(f"{asked} {text}: must be numbers of layers, counted from 0, as in 23,47")
    return tuple(int(part) for part in text.split(","))


def parse_forms(asked: str, texts: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """`mxfp4=dequantised` → (("mxfp4", "dequantised"),). Raises UserError for what is no form of a format."""
    from schedc.target.products import products_file

    known = products_file().forms
    forms: dict[str, str] = {}
    for text in texts or ():
        stored, _, form = text.partition("=")
        if form not in known.get(stored, {}):
            listed = "; ".join(f"{name}={' or '.join(some)}" for name, some in known.items() if len(some) > 1)
            raise UserError(f"{asked} {text}: there are {listed}")
        if forms.setdefault(stored, form) != form:
            raise UserError(f"{asked} {text}: {stored} is to be {forms[stored]} already; give one of them")
    return tuple(forms.items())


def parse_settings(texts: Sequence[str]) -> dict[str, int | float]:
    """`depth=8` → {"depth": 8}. Raises UserError with all that are not like that."""
    settings: dict[str, int | float] = {}
    problems = []
    for text in texts:
        key, equals, value = text.partition("=")
        number = _number(value)
        if not equals or not key.isidentifier() or number is None:
            problems.append(f"--set {text}: must be like depth=8 or slot_mib=0.5")
        elif key in settings:
            problems.append(f"--set {text}: {key} is set twice")
        else:
            settings[key] = number
    if problems:
        raise UserError("\n".join(problems))
    return settings


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if isfinite(number) else None
    return None


Command = TypeVar("Command", bound=Callable[..., None])


def with_options(command: Command, **groups: type) -> Command:
    """Give a command the fields of dataclasses as options on its command line; it takes each as one argument."""
    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name not in groups]
    shared = {
        group: [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields(kind)
        ]
        for group, kind in groups.items()
    }

    @wraps(command)
    def run(**values: Any) -> None:
        made = {
            group: kind(**{parameter.name: _given(values.pop(parameter.name)) for parameter in shared[group]})
            for group, kind in groups.items()
        }
        plan = next((group.plan for group in made.values() if isinstance(group, ScheduleOptions)), None)
        try:
            command(**values, **made)
        except UserError as error:
            if plan is not None:
                from schedc.cli.planned import tell_of_plan

                tell_of_plan(error, plan)
            raise

    every = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    every += [parameter for parameters in shared.values() for parameter in parameters]
    run.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return run  # type: ignore[return-value]


def _given(value: Any) -> Any:
    """Some typers give an empty list for an option that was not given."""
    return None if value == [] else value


def with_schedule_options(command: Command) -> Command:
    return with_options(command, options=ScheduleOptions)

"""A plan as a YAML file: what a search found, or what you write yourself.

    version: 2
    model: gpt-oss-20b
    target: tpu7x:2x2x1
    devices: 8
    rows: 1
    context: 2048
    wire: bf16
    collective: one_shot,feed_forward=two_phase
    placement: {kv: heads, …}
    assumed: {routing: uniform, profile: gpt-oss}
    predicted_us: 812.3
    plan:
      kv_tokens: 512
      rings:
      - {name: weights, slots: 8, ahead: 8, streams: [w_qkv_0_0, …]}
      tile_units: {w_qkv_0_0: 5, …}
      …

The keys of `plan` are the fields of `Plan`, which says what they mean; the others are options of `schedc compile`, as
they are written there. A file without a version is of version 1, which knows nothing of wires, collectives, formats and
placements: those of the command line are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from schedc.errors import UserError
from schedc.lower.graph import Order, RowsAre, SumCut
from schedc.placement.rules import PlacementRules
from schedc.schedule.plan import Plan, Ring
from schedc.spec.base import Part
from schedc.spec.mixers.mla import LatentCache
from schedc.spec.storage import CacheFormat, Format, WindowCache
from schedc.validation import validate
from schedc.weights.layout import WordDtype
from schedc.yaml_text import YamlError, format_yaml, parse_yaml

VERSION = 2

MOST_SKEW_NS = 1e9
MOST_CLOCK_MHZ = 1e5
"""Beyond them a prediction means nothing, and times are no longer told apart. As the options of `schedc` have them."""

_SHIPPED = Path(__file__).parents[1] / "explore" / "plans"


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value


class RingPart(Part):
    name: str
    slots: int = Field(ge=1)
    ahead: int = Field(ge=0)
    begin: str | None = None
    streams: tuple[str, ...]

    _tuples = field_validator("streams", mode="before")(_as_tuples)


class PlanPart(Part):
    kv_tokens: int = Field(ge=1)
    kv_slots: int = Field(ge=2, default=2)
    sums: SumCut = "tiles"
    rings: tuple[RingPart, ...]
    tile_units: dict[str, int]
    collectives: dict[str, str] = Field(default_factory=dict)
    wires: dict[str, WordDtype] = Field(default_factory=dict)
    issue: dict[str, str] = Field(default_factory=dict)
    orders: dict[str, Order] = Field(default_factory=dict)
    at_once: dict[str, int] = Field(default_factory=dict)
    deferred: dict[str, str] = Field(default_factory=dict)
    order: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    _tuples = field_validator("rings", mode="before")(_as_tuples)

    @field_validator("order", mode="before")
    @classmethod
    def _orders(cls, value: Any) -> Any:
        return {key: _as_tuples(item) for key, item in value.items()} if isinstance(value, dict) else value

    def to_plan(self) -> Plan:
        rings = tuple(Ring(r.name, r.streams, r.slots, r.ahead, r.begin) for r in self.rings)
        return Plan(**{**dict(self), "rings": rings})


class AssumedPart(Part):
    """What the prediction assumed: the law of routing, and the constants and the cycles that were given. `profile`: a
    shipped table of cycles, or a file; the fitted formulas without one."""

    routing: str = "uniform"
    experts: Literal["slowest", "mean"] = "slowest"
    seed: int = Field(ge=0, default=0)
    skew_ns: float | None = Field(default=None, ge=0, le=MOST_SKEW_NS)
    clock_mhz: float | None = Field(default=None, ge=1, le=MOST_CLOCK_MHZ)
    profile: str | None = None


class PlanFile(Part):
    """A plan, and what it is a plan for: all of the step but the model itself. None: as the command line says.

    `settings` are those of the policy, or of the search, that made it, `found_by` is the command, `predicted_us` the
    predicted step and `priced_by` who gave the cycles.
    """

    version: int = Field(ge=1, default=1)
    model: str
    target: str
    devices: int = Field(ge=1)
    rows: int = Field(ge=1)
    rows_are: RowsAre = "sequences"
    context: int = Field(ge=1)
    weights: Format | None = None
    weights_of: str | None = None
    kv: CacheFormat | None = None
    latent_cache: LatentCache | None = None
    window_cache: WindowCache | None = None
    wire: str | None = None
    collective: str | None = None
    forms: dict[str, str] = Field(default_factory=dict)
    taps: tuple[int, ...] = ()
    placement: PlacementRules | None = None
    assumed: AssumedPart | None = None
    settings: dict[str, int | float] = Field(default_factory=dict)
    found_by: str = ""
    predicted_us: float | None = None
    priced_by: str = ""
    plan: PlanPart

    _tuples = field_validator("taps", mode="before")(_as_tuples)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Plain data in the order of the file; what is at its default is left out."""
    data = asdict(plan)
    data["rings"] = [{key: value for key, value in ring.items() if value is not None} for ring in data["rings"]]
    default = {name: field.default for name, field in PlanPart.model_fields.items()}
    kept = {name: data[name] for name in default if data[name] and data[name] != default[name]}
    return {name: _plain(value) for name, value in kept.items()}


def plan_from_dict(data: Any) -> Plan:
    """Raises UserError with all that is wrong."""
    part, faults = validate(PlanPart, data)
    if part is None:
        raise UserError("\n".join(["the plan is not understood:", *(f"  {fault}" for fault in faults)]))
    return part.to_plan()


def type_faults(plan: Plan) -> list[str]:
    """Of a plan that was made in Python, where nothing has looked at the types of what it holds."""
    return validate(PlanPart, {field.name: _plain(getattr(plan, field.name)) for field in fields(plan)})[1]


def write_plan(file: PlanFile) -> str:
    """As the version that is known, whichever it was read from."""
    head = file.model_dump(mode="json", exclude_none=True, exclude={"plan", "version"})
    kept = {name: value for name, value in head.items() if value not in ("", {}, [])}
    return format_yaml({"version": VERSION, **kept, "plan": plan_to_dict(file.plan.to_plan())})


def plan_part(plan: Plan) -> PlanPart:
    part, faults = validate(PlanPart, plan_to_dict(plan))
    if part is None:
        raise ValueError("; ".join(faults))
    return part


def list_plans() -> list[str]:
    """Names of the plans that come with schedc, sorted."""
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


def find_plan(text: str) -> Path:
    """A file, or the name of a plan that comes with schedc. Raises UserError for neither."""
    if text in list_plans():
        return _SHIPPED / f"{text}.yaml"
    if not text.endswith((".yaml", ".yml")):
        there = ", ".join(list_plans()) or "none"
        raise UserError(f"no plan is called {text!r}; there are {there}. A file of your own ends in .yaml")
    return Path(text)


def read_plan(path: Path) -> PlanFile:
    """Raises UserError for a file that is not there or not a plan, with all its faults."""
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"plan {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"plan {path} cannot be read: {error}") from None
    except YamlError as error:
        raise UserError(f"plan {path}: {error}") from None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UserError(
            f"plan {path} is of version {version}, which a later schedc has written; this one knows {VERSION}"
        )
    file, faults = validate(PlanFile, data)
    if file is None:
        raise UserError("\n".join([f"plan {path} is not understood:", *(f"  {fault}" for fault in faults)]))
    try:
        file.plan.to_plan()
    except ValueError as error:
        raise UserError(f"plan {path}: {error}") from None
    return file


def _plain(value: Any) -> Any:
    if isinstance(value, Ring):
        return _plain(vars(value))
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value

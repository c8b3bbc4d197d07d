"""A plan as a YAML file: what a search found, or what you write yourself.

    model: smollm2-135m
    target: tpu7x:2x2x1
    devices: 1
    rows: 1
    context: 2048
    plan:
      kv_tokens: 512
      rings:
      - {name: weights, slots: 8, ahead: 8, streams: [w_qkv_0_0, …]}
      tile_units: {w_qkv_0_0: 5, …}
      …

The keys of `plan` are the fields of `Plan`, which says what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from schedc.errors import UserError
from schedc.lower.graph import Order, SumCut
from schedc.schedule.plan import Plan, Ring
from schedc.spec.base import Part
from schedc.validation import validate
from schedc.weights.layout import WordDtype
from schedc.yaml_text import YamlError, format_yaml, parse_yaml

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


class PlanFile(Part):
    """A plan, and what it is a plan for. `found_by` is the command that made it, `predicted_us` its predicted step."""

    model: str
    target: str
    devices: int = Field(ge=1)
    rows: int = Field(ge=1)
    context: int = Field(ge=1)
    found_by: str = ""
    predicted_us: float | None = None
    plan: PlanPart


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
    head = {name: value for name, value in dict(file).items() if name != "plan" and value not in ("", None)}
    return format_yaml({**head, "plan": plan_to_dict(file.plan.to_plan())})


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

"""On how many devices, and how each weight family is divided over them: bytes a device, against other rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from schedc.compiler.decisions.decision import Alternative, Decision
from schedc.compiler.pipeline import Request
from schedc.compiler.placement import least_bytes
from schedc.errors import SchedcError
from schedc.lower.graph import StepShape
from schedc.placement.rules import PlacementRules
from schedc.placement.table import held

COUNTED = "bytes are of weights and caches without padding, outputs are not in"
OTHER_RULES: dict[str, tuple[str, ...]] = {
    "attention": ("heads", "replicated"),
    "dense": ("columns", "replicated"),
    "head": ("vocab", "replicated"),
    "kv": ("heads", "sequence"),
}


def decisions(request: Request) -> Iterator[Decision]:
    spec, shape, target = request.spec, request.shape, request.target
    limit = target.capability.hbm_usable_bytes
    numbers = [n for n in range(1, target.devices + 1) if target.devices % n == 0]
    others = (_with(request, f"{n} devices", replace(shape, devices=n)) for n in numbers if n != shape.devices)
    yield Decision(
        "devices",
        f"devices of {target.name} that run the kernel",
        f"{shape.devices} of {target.devices}",
        f"asked for, or the fewest whose HBM of {limit:,} bytes holds the model; {COUNTED}",
        "bytes a device",
        _bytes(request, shape),
        tuple(others),
    )
    if shape.devices == 1:
        return
    rules = shape.placement
    statements = held(spec, shape.devices, rules)
    for family, values in OTHER_RULES.items():
        value = getattr(rules, family)
        of_family = [s.what for s in statements if s.family == ("cache" if family == "kv" else family)]
        if not of_family:
            continue
        others = (
            _with(request, other, replace(shape, placement=_changed(rules, family, other)))
            for other in values
            if other != value
        )
        yield _of(request, family, value, "; ".join(dict.fromkeys(of_family)), tuple(others))
    experts = [s for s in statements if s.family == "experts"]
    if experts:
        chosen = rules.experts
        name = (
            "as many devices share an expert as waste at most an eighth"
            if chosen is None
            else f"{chosen.expert_parallel} groups of {chosen.tensor_parallel} devices"
        )
        groups = [n for n in range(1, shape.devices + 1) if shape.devices % n == 0]
        changed = (
            (
                f"{n} {'group' if n == 1 else 'groups'} of {shape.devices // n}",
                {"expert_parallel": n, "tensor_parallel": shape.devices // n},
            )
            for n in groups
        )
        others = (
            _with(request, text, replace(shape, placement=_changed(rules, "experts", value))) for text, value in changed
        )
        yield _of(request, "experts", name, experts[0].what, tuple(others))


def _of(request: Request, family: str, chosen: str, what: str, others: tuple[Alternative, ...]) -> Decision:
    cost = _bytes(request, request.shape)
    return Decision("placement", family, chosen, f"a device has {what}; {COUNTED}", "bytes a device", cost, others)


def _changed(rules: PlacementRules, family: str, value: Any) -> PlacementRules:
    return PlacementRules.model_validate(rules.model_dump(mode="json") | {family: value})


def _with(request: Request, name: str, shape: StepShape) -> Alternative:
    try:
        taken = least_bytes(request.spec, shape)
    except SchedcError as error:
        return Alternative(name, None, str(error).splitlines()[-1].strip())
    limit = request.target.capability.hbm_usable_bytes
    return Alternative(name, taken, "" if taken <= limit else f"more than the {limit:,} bytes there are")


def _bytes(request: Request, shape: StepShape) -> int:
    """Weights and caches, without padding to tiles."""
    return least_bytes(request.spec, shape)

"""What another order, and then other exchanges, would be worth with the published placement.

The variants are tried one after the other, each on top of those that were worth something, so that the table says where
a gain comes from; which are worth something depends on the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.errors import UserError
from schedc.published.demand import Demand
from schedc.published.form import PublishedSchedule
from schedc.published.predict import Prediction, predict_published
from schedc.published.read import schedule_data
from schedc.published.variants import Variant, Variants, schedule_of, with_variant

LEAST_GAIN = 0.001
"""Of the step: what is worth less is left out."""


@dataclass(frozen=True)
class Tried:
    """A variant on top of those kept before it; `worth_us` is what the step becomes shorter by it."""

    variant: Variant | None
    """None: as published."""
    schedule: PublishedSchedule
    prediction: Prediction | None
    """None if it does not fit."""
    worth_us: float
    kept: bool
    why_not: str = ""

    @property
    def name(self) -> str:
        return self.variant.name if self.variant else "published"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.variant.kind if self.variant else "published",
            "idea": self.variant.idea if self.variant else self.schedule.title,
            "step_us": self.prediction.step_us if self.prediction else None,
            "worth_us": round(self.worth_us, 3),
            "kept": self.kept,
            "why_not": self.why_not,
        }


def gains(
    variants: Variants, demand: Demand, machine: Machine | None = None, load: Load = DEFAULT_LOAD
) -> Iterator[Tried]:
    """The published schedule, then every variant in turn.

    One that does not go without another that was worth nothing is not kept either.
    """
    data = schedule_data(variants.of)
    schedule = schedule_of(data, variants.of)
    best = predict_published(schedule, demand, machine, load)
    most = max(variants.vmem_mib, best.vmem_mib)
    yield Tried(None, schedule, best, 0.0, True)
    for variant in variants.variants:
        try:
            changed = with_variant(data, variant)
            schedule = schedule_of(changed, f"variant {variant.name}")
            found = predict_published(schedule, demand, machine, load)
        except UserError as error:
            yield Tried(variant, schedule, None, 0.0, False, str(error))
            continue
        worth = best.step_us - found.step_us
        if found.vmem_mib > most:
            why_not = f"takes {found.vmem_mib:.1f} MiB of VMEM, {most:.1f} are left"
        elif worth < LEAST_GAIN * best.step_us:
            why_not = "no gain"
        else:
            why_not = ""
        yield Tried(variant, schedule, found, worth, not why_not, why_not)
        if not why_not:
            data, best = changed, found


def best_of(tried: list[Tried], kind: Literal["published", "order", "collectives"]) -> Tried:
    """The last that was kept up to this step: as published, with another order, with other exchanges too."""
    kinds = {"published": (), "order": ("order",), "collectives": ("order", "collectives")}[kind]
    return [t for t in tried if t.kept and (t.variant is None or t.variant.kind in kinds)][-1]

"""Experts over devices: whole experts by group of devices, an expert's width over the devices of a group."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.errors import SpecError
from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, whole
from schedc.placement.widths import PANEL
from schedc.spec.feed_forwards.moe import Moe


@dataclass(frozen=True)
class ExpertSplit:
    """`experts`: which ones a device holds; `width`: which columns of their gate and up."""

    experts: Split
    width: Split

    @property
    def tensor_parallel(self) -> int:
        """Devices that share an expert."""
        return self.experts.every

    @property
    def groups(self) -> int:
        """Groups of devices that hold different experts."""
        return self.experts.ring

    @property
    def is_split(self) -> bool:
        return self.groups > 1 or self.tensor_parallel > 1

    @property
    def waste(self) -> float:
        """The share of the places for experts' weights that is padding."""
        held = self.experts.each * self.groups * self.width.each * self.tensor_parallel
        return 1.0 - self.experts.total * self.width.total / held


def split_experts(experts: int, width: int, devices: int, tensor_parallel: int, unit: int) -> ExpertSplit:
    """Device d is one of group d // tensor_parallel, and holds part d % tensor_parallel of each of its experts.

    A part is whole units, such as panels of 128 columns. The last groups may hold fewer experts, or none.
    """
    if devices == 1:
        return ExpertSplit(whole(experts), whole(width))
    groups = devices // tensor_parallel
    units = -(-width // unit)
    columns = (
        Split(width, -(-units // tensor_parallel) * unit, 1, tensor_parallel) if tensor_parallel > 1 else whole(width)
    )
    return ExpertSplit(Split(experts, -(-experts // groups), tensor_parallel, groups), columns)


MOST_PADDING = 1 / 8
"""Of the places for experts' weights. A device that waits for the one with most of the chosen experts loses more
(docs/decisions/041)."""


def best_tensor_parallel(experts: int, width: int, devices: int, unit: int) -> int:
    """Of the divisors of `devices` the largest that wastes at most an eighth, else the one that wastes least: every
    expert chosen then loads as many devices as can share it, whatever the router does."""
    choices = [n for n in range(1, devices + 1) if devices % n == 0]
    waste = {n: split_experts(experts, width, devices, n, unit).waste for n in choices}
    return max((n for n in choices if waste[n] <= MOST_PADDING), default=min(choices, key=lambda n: (waste[n], -n)))


def experts_of(moe: Moe, devices: int, rules: PlacementRules) -> ExpertSplit:
    """As the rules say, else shared by as many devices as waste little: by none if its output is normalised.

    Raises SpecError for rules that divide an expert whose output is normalised: no device has all of it.
    """
    shared_by = rules.experts.tensor_parallel if rules.experts else None
    if moe.expert_norm is not None:
        if shared_by is not None and shared_by > 1:
            why = f"{shared_by} devices cannot share an expert with a norm of its output; use 1"
            raise SpecError("placement", [f"experts.tensor_parallel: {why}"])
        shared_by = 1
    if shared_by is None:
        shared_by = best_tensor_parallel(moe.experts, moe.width, devices, PANEL)
    return split_experts(moe.experts, moe.width, devices, shared_by, PANEL)

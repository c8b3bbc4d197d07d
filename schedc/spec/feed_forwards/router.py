"""Which experts a token goes to, and with which weights."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem


class Router(Part):
    """l = logit_multiplier · x·W (+ b with a `bias`), in f32; the `top_k` experts with the highest choice win.

    `score`: softmax: s = softmax(l) over all experts, choice s; softmax_of_chosen: choice l, s = softmax over the
    winners alone; sigmoid: s = sigmoid(l), choice s. With a `selection_bias` b' the choice is s + b', the weight is
    still s. `groups` > 1: only experts of the `groups_kept` best groups can win; a group is as good as the sum of its
    two highest choices (`top2_sum`) or its highest (`max`).
    weights w = s of the winners, divided by (their sum + `epsilon`) if `renormalise`, times `scale`.
    """

    score: Literal["softmax", "softmax_of_chosen", "sigmoid"]
    bias: bool = False
    selection_bias: bool = False
    logit_multiplier: float = Field(default=1.0, gt=0)
    groups: int = Field(default=1, gt=0)
    groups_kept: int = Field(default=1, gt=0)
    group_score: Literal["top2_sum", "max"] = "top2_sum"
    renormalise: bool
    epsilon: float = Field(default=0.0, ge=0)
    scale: float = Field(default=1.0, gt=0)

    def problems(self) -> Iterator[Problem]:
        if self.groups_kept > self.groups:
            yield "groups_kept", f"{self.groups_kept} of {self.groups} groups cannot be kept; use {self.groups} or less"
        if self.score == "softmax_of_chosen" and (self.renormalise or self.selection_bias):
            yield "score", "softmax_of_chosen already sums to one and chooses by the logits; use softmax or sigmoid"
        if self.epsilon and not self.renormalise:
            yield "epsilon", "is added to the divisor of renormalise, which is off"

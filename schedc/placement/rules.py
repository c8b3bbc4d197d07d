"""What a user may say of the placement, by weight family; the defaults are the rules."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schedc.spec.base import Part


class ExpertRules(Part):
    """`expert_parallel` groups of devices hold different experts; `tensor_parallel` devices of a group share each."""

    expert_parallel: int = Field(gt=0)
    tensor_parallel: int = Field(gt=0)


class PlacementRules(Part):
    """heads: query heads beside their kv heads, columns of q, k, v and rows of o; columns: of gate and up, rows of
    down; vocab: columns of the head; replicated: all of it on every device.

    Caches go with the heads that read them, or (sequence) their tiles lie in turn on the devices that read the same:
    each attends to its tiles with the heads of all, and the softmaxes are combined. Embeddings, routers, norms and
    biases of outputs are on every device. A shared expert is divided by columns, as its output joins the sum of the
    others.
    """

    attention: Literal["heads", "replicated"] = "heads"
    dense: Literal["columns", "replicated"] = "columns"
    experts: ExpertRules | None = Field(default=None, description="None: by as many devices as waste at most an eighth")
    head: Literal["vocab", "replicated"] = "vocab"
    kv: Literal["heads", "sequence"] = "heads"

"""What a user may say of the placement, by weight family; the defaults are the rules."""

from __future__ import annotations

from typing import Literal

from schedc.spec.base import Part


class PlacementRules(Part):
    """`heads`: query heads with their kv heads, columns of q, k, v and rows of o; `columns`: of gate and up, rows of
    down; `vocab`: rows of the table, columns of the head. Caches go with the heads that read them.
    """

    attention: Literal["heads", "replicated"] = "heads"
    dense: Literal["columns", "replicated"] = "columns"
    head: Literal["vocab", "replicated"] = "vocab"

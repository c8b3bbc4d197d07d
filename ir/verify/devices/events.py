"""What a device does that others can notice, and what it waits for from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schedc.ir.verify.state import Counters, Element, Transfer


@dataclass(frozen=True, slots=True)
class Post:
    """`amount` is added to an element of a semaphore of `device`; for a transfer, when it has arrived."""

    device: int
    element: Element
    amount: int
    arrival: Transfer | None = None
    """As the receiver sees it, if it comes from another device."""


@dataclass(frozen=True, slots=True)
class Event:
    """`post` never blocks, `take` blocks until there is `amount` to take, `barrier` until every device is there."""

    kind: Literal["post", "take", "barrier"]
    op: int
    """Index of the operation, in the order of `program.walk`."""
    counters: Counters
    posts: tuple[Post, ...] = ()
    element: Element = ("", 0)
    amount: int = 0

"""What an algorithm file gives to the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schedc.lower.collectives.protocol import Collective, Exchanged, Kind


@dataclass(frozen=True)
class Hop:
    """A step of a collective as a device sees it: `sibling_bytes` to the other device of its chip, `link_bytes` to
    devices of other chips, at the same time."""

    sibling_bytes: int
    link_bytes: int


@dataclass(frozen=True)
class Algorithm:
    """`build` makes the collective; `hops` says what it sends, one after the other, for the cost of it."""

    name: str
    kinds: tuple[Kind, ...]
    build: Callable[[Exchanged], Collective]
    hops: Callable[[Exchanged], tuple[Hop, ...]]

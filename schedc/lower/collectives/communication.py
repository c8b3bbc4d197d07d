"""How the devices of a step talk to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from schedc.lower.collectives.group import Topology
from schedc.weights.layout import WordDtype

SumSite = Literal["mixer", "feed_forward", "latent"]
"""What devices sum in a layer: the output of a mixer, that of a feed-forward, what experts give in their latent space.
"""
SUM_SITES: tuple[SumSite, ...] = get_args(SumSite)

FUSED = "fused"
"""Of the site `latent`, beside the algorithms: each device gets its part of the sum alone, and the norm behind it is a
factor of the sum of the outputs."""


@dataclass(frozen=True)
class Communication:
    """Partial outputs are summed by the algorithm `all_reduce`, in words of `wire`, where a site does not differ."""

    topology: Topology = field(default_factory=lambda: Topology(1, 1))
    all_reduce: str = "one_shot"
    wire: WordDtype = "f32"
    collectives: tuple[tuple[str, str], ...] = ()
    """(site, algorithm)"""
    wires: tuple[tuple[str, WordDtype], ...] = ()
    """(site, wire)"""

    def asked(self, site: SumSite) -> str | None:
        """The algorithm that is asked for there, if one is."""
        return dict(self.collectives).get(site)

    def algorithm(self, site: SumSite) -> str:
        return self.asked(site) or self.all_reduce

    def wire_of(self, site: SumSite) -> WordDtype:
        return dict(self.wires).get(site, self.wire)

    def at_sites(self, collectives: Mapping[str, str], wires: Mapping[str, WordDtype]) -> Communication:
        """The same but for these sites."""
        return replace(
            self,
            collectives=tuple(sorted({**dict(self.collectives), **collectives}.items())),
            wires=tuple(sorted({**dict(self.wires), **wires}.items())),
        )

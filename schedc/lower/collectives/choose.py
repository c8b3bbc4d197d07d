"""Which algorithm is quickest, by a first linear cost: a constant, and hops with their bytes over the slower wire.

    µs = collective_us[kind] + Σ hops (collective_hop_us + max(sibling bytes / sibling_gb_s, link bytes / links_gb_s))

or the line that is known for an algorithm as a whole. It counts neither what other work hides nor that hosts are
further apart than chips; the figures are those of the chip's file.
"""

from __future__ import annotations

from schedc.errors import UserError
from schedc.ir.program import ROW_BYTES
from schedc.lower.collectives.algorithm import Algorithm, Hop
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.collectives.registry import algorithms_for
from schedc.target.chip import Cost


def choose(exchanged: Exchanged, cost: Cost) -> str:
    """The name of the algorithm that takes the least time; the first in the registry of equal ones."""
    costs: dict[str, float] = {}
    for algorithm in algorithms_for(exchanged.kind):
        try:
            costs[algorithm.name] = microseconds(algorithm, exchanged, cost)
        except UserError:
            continue  # The algorithm cannot serve this group.
    return min(costs, key=lambda name: costs[name])


def microseconds(algorithm: Algorithm, exchanged: Exchanged, cost: Cost) -> float:
    """Raises UserError where the algorithm cannot serve the group."""
    hops = algorithm.hops(exchanged)
    for line in cost.collective_lines:
        if (line.kind, line.algorithm, line.devices) == (exchanged.kind, algorithm.name, exchanged.group.size):
            return line.us + line.us_per_kib * exchanged.words(exchanged.rows) * ROW_BYTES / 1024
    return cost.collective_us[exchanged.kind] + sum(cost.collective_hop_us + _bytes_us(hop, cost) for hop in hops)


def _bytes_us(hop: Hop, cost: Cost) -> float:
    over_links = hop.link_bytes / cost.links_gb_s
    return max(over_links, hop.sibling_bytes / cost.sibling_gb_s if cost.sibling_gb_s else over_links) / 1e3

"""Which algorithm is quickest, by a first linear cost: a constant, and hops with their bytes over the slower wire.

    µs = collective_us[kind] + Σ hops (collective_hop_us + max(sibling bytes / sibling_gb_s, link bytes / links_gb_s))

or the line that is known for an algorithm as a whole. It counts neither what other work hides nor that hosts are
further apart than chips; the figures are those of the chip's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from schedc.errors import UserError
from schedc.ir.program import ROW_BYTES
from schedc.lower.collectives.algorithm import Algorithm, Hop
from schedc.lower.collectives.communication import FUSED, Communication
from schedc.lower.collectives.group import Group, topology_of
from schedc.lower.collectives.protocol import SUBLANES, Exchanged
from schedc.lower.collectives.registry import algorithms_for, make_collective
from schedc.lower.graph import LANES, ceil_div, round_up
from schedc.target.chip import Cost
from schedc.target.target import Target
from schedc.weights.layout import WordDtype

MEMORY_SHARE = 0.125
"""How much of VMEM the buffers of a sum may take where the algorithm is not given: weights in flight need the rest."""


def communication_for(
    hidden: int,
    rows: int,
    target: Target,
    all_reduce: str | None = None,
    wire: WordDtype | None = None,
    collectives: Mapping[str, str] | None = None,
    wires: Mapping[str, WordDtype] | None = None,
    named: Callable[[str], str] = "--{}".format,
) -> Communication:
    """How the devices of a step that are used sum f32[rows, hidden]: by `all_reduce`, or what is quickest for it.

    The wire is f32 unless it is given. `collectives` and `wires` are of single sites. `named` says where `collective`
    and `wire` were asked for, for messages.

    Raises UserError for an algorithm that does not exist, or cannot serve these devices.
    """
    topology, devices = topology_of(target), target.devices_used
    if devices == 1:
        asked: dict[str, list[str | None]] = {
            "collective": [all_reduce, *(collectives or {}).values()],
            "wire": [wire, *(wires or {}).values()],
        }
        for key, values in asked.items():
            if value := next((value for value in values if value is not None), None):
                raise UserError(
                    f"{named(key)} {value}: one device has nobody to talk to; give --devices, or leave it out"
                )
        return Communication(topology)
    wire = wire or "f32"
    summed = summed_by(hidden, rows, target, wire)
    for algorithm in (all_reduce, *(collectives or {}).values()):
        if algorithm is not None and algorithm != FUSED:
            try:
                make_collective(algorithm, summed)
            except UserError as error:
                raise UserError(f"{named('collective')} {algorithm}: {error}") from None
    most_rows = int(MEMORY_SHARE * target.capability.vmem_usable_bytes) // ROW_BYTES
    talk = Communication(topology, all_reduce or choose(summed, target.cost, most_rows), wire)
    return talk.at_sites(collectives or {}, wires or {})


def summed_by(hidden: int, rows: int, target: Target, wire: WordDtype) -> Exchanged:
    """What the used devices of a target, at least two, sum: f32[rows, hidden]."""
    devices, padded = target.devices_used, round_up(rows, SUBLANES)
    height = ceil_div(hidden, LANES) * padded
    summed = Exchanged("sum", "all_reduce", Group(devices, devices), topology_of(target), height, wire)
    return replace(summed, height=padded, used=rows) if rows < padded else summed


def choose(exchanged: Exchanged, cost: Cost, most_rows: int | None = None) -> str:
    """The name of the algorithm that takes the least time; the first in the registry of equal ones.

    Only of those whose buffers are at most `most_rows` rows of VMEM, if there are any; else the one with the smallest.
    """
    costs: dict[str, float] = {}
    rows: dict[str, int] = {}
    for algorithm in algorithms_for(exchanged.kind):
        try:
            costs[algorithm.name] = microseconds(algorithm, exchanged, cost)
        except UserError:
            continue  # The algorithm cannot serve this group.
        rows[algorithm.name] = buffer_rows(algorithm, exchanged)
    small = [name for name in costs if most_rows is None or rows[name] <= most_rows]
    return min(small, key=lambda name: costs[name]) if small else min(rows, key=lambda name: rows[name])


def buffer_rows(algorithm: Algorithm, exchanged: Exchanged) -> int:
    """Rows of VMEM that a collective's buffers take, all slots."""
    buffers = algorithm.build(exchanged).declarations().buffers
    return sum(buffer.rows * buffer.slots for buffer in buffers)


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

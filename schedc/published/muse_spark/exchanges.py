"""Their collectives over the eight devices of four chips, of schedc's stages: flat and chip by chip."""

from __future__ import annotations

from schedc.lower.collectives.group import Group, Topology
from schedc.lower.collectives.protocol import Exchanged, Kind
from schedc.lower.collectives.registry import make_collective
from schedc.lower.collectives.stages import Gather, Scatter, Staged
from schedc.published.muse_spark.variant import Wire

DEVICES = 8
TOPOLOGY = Topology(devices_per_chip=2, devices_per_host=8)


def exchanged(name: str, kind: Kind, rows: int, wire: Wire) -> Exchanged:
    return Exchanged(name, kind, Group(DEVICES, DEVICES), TOPOLOGY, rows, wire)


def all_reduce(name: str, rows: int, wire: Wire, hierarchical: bool = False) -> Staged:
    """f32[rows, 128]: reduce-scatter and all-gather, of all at once or of the chip's two and then of the four chips."""
    what = exchanged(name, "all_reduce", rows, wire)
    if not hierarchical:
        return _staged(make_collective("two_phase", what))
    sibling, chips = Group(DEVICES, 2), Group(DEVICES, 4, 2)
    half = what.words(rows, DEVICES) // 2
    part = half // 4
    stages = [
        (stage(f"{name}_{number}", group, block, what.stage_pool(number), 1), combine)
        for number, (stage, group, block, combine) in enumerate(
            (
                (Scatter, sibling, half, "sum"),
                (Scatter, chips, part, "sum"),
                (Gather, chips, part, "keep"),
                (Gather, sibling, half, "keep"),
            )
        )
    ]
    return Staged(what, tuple(stages), (2, 4))  # type: ignore[arg-type]


def all_gather(name: str, rows: int, hierarchical: bool = False) -> Staged:
    """f32[rows, 128] of every device to all, as bf16."""
    what = exchanged(name, "all_gather", rows, "bf16")
    return _staged(make_collective("hierarchical" if hierarchical else "one_shot", what))


def _staged(collective) -> Staged:
    assert isinstance(collective, Staged)
    return collective

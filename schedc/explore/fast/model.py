"""A step whose order is still open: what every phase does, as numbers, and what may be chosen about it.

Made once from a step graph; `compose.py` then puts an ordering together in microseconds, where assembling a program and
recording it takes tenths of a second. Loops over layers are cut to a few trips: what a trip takes in the steady state
is what the last of them takes more, times the trips that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.explore.fast.bursts import Gathering
from schedc.explore.fast.columns import DEPTH, BurstColumns, Columns, fed_by_hbm
from schedc.explore.fast.phases import Recorded, record_phases, transfer
from schedc.explore.fast.trace import Note
from schedc.ir.program import ROW_BYTES
from schedc.lower.graph import StepGraph, consumed, phases_in
from schedc.target.target import Target

SELECTIONS, PHASES = 6, 100
"""That a loop is to go through in its steady state, so that the mean of the chosen members is about the expected one,
and that of trips that differ, since slots go round in another period, is about that of all."""

MOST_SLOTS = 64
"""Of a ring."""


class Arrays(NamedTuple):
    """Units are the phases and selections of all segments as they are lowered; parts are the phases, those of a
    selection's members among them. Slices are runs of notes, one for each execution of a part."""

    trips: np.ndarray
    """By segment, as many as are simulated."""
    whole_trips: np.ndarray
    unit_first: np.ndarray
    """By segment, its first unit; one more at the end."""
    part_first: np.ndarray
    """By unit, its first part; one more at the end."""
    members: np.ndarray
    """[unit, trip]: members of its selection that are chosen; -1 for a phase."""
    stream: np.ndarray
    """By part: the stream it takes tile by tile, or -1."""
    vectors: np.ndarray
    """By part: the stream it reads whole, or -1."""
    slice_of: np.ndarray
    """[part, trip]: its slice of member 0, tile 0; those of the other members and tiles follow in this order."""
    slice_first: np.ndarray
    """By slice, its first note; one more at the end."""
    slice_rest: np.ndarray
    """By slice, core time after its last note, ns."""
    tiles: np.ndarray
    """By stream."""
    rows: np.ndarray
    """By stream, of a tile."""
    need_ns: np.ndarray
    """By stream, of the HBM for a tile."""
    chosen: np.ndarray
    """By stream: whether it is one of a selection's."""
    transfer_slice: np.ndarray
    """By transfer: its slice of trip 0; -1 for the first tiles of a selection's members."""
    transfer_unit: np.ndarray
    """By transfer: the selection whose first tiles it is, or -1."""
    ticks: np.ndarray
    """ns of a wait, a start and a guard, and the latency of a transfer to VMEM."""
    trip_ns: np.ndarray
    """By segment, ns of the core for a trip of its loop, beside what the body takes."""
    member_ns: np.ndarray
    """The same by unit, of the loop over a selection's members."""
    tile_ns: np.ndarray
    """The same by part, of the loop over its tiles."""
    semaphores: int
    """Those of the graph; the rings' come behind them."""
    length: int
    """Entries that are always enough for an ordering."""


@dataclass(frozen=True)
class Model:
    """`units`, `streams` and `transfers` are the names of what the arrays number."""

    graph: StepGraph
    arrays: Arrays
    notes: Columns
    bursts: BurstColumns
    fed: np.ndarray
    """By semaphore, whether transfers of the HBM give to it."""
    routes: int
    in_flight: int
    units: tuple[str, ...]
    streams: tuple[str, ...]
    transfers: tuple[str, ...]

    def numbers(self) -> tuple[Any, ...]:
        """What `evaluate` takes of the model."""
        sizes = (self.routes, DEPTH, self.in_flight)
        return self.arrays, *self.notes.all(), self.bursts.all(), self.fed, sizes

    def room(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `evaluate` writes into: a trace, and the time after every trip."""
        return *Columns.empty(self.arrays.length).all(), np.zeros(int(self.arrays.trips.sum()))


def model_of(
    graph: StepGraph,
    target: Target,
    machine: Machine,
    inputs: Inputs | None = None,
    trips: int | None = None,
    load: Load = DEFAULT_LOAD,
) -> Model:
    """Of a step graph whose grain is decided, its phases priced as `machine` does; `trips` of a loop are simulated."""
    trips = min(trips or _enough_trips(graph), max(segment.trips for segment in graph.segments))
    recorded = record_phases(graph, target, machine, inputs, trips, load)
    streams = {stream.name: index for index, stream in enumerate(graph.streams)}
    parts = [phases_in(phase) for segment in graph.segments for phase in segment.phases]
    order = [part.name for several in parts for part in several]
    prefetches = [prefetch.name for segment in graph.segments for prefetch in segment.prefetches]
    slices = _Slices(recorded, [*order, *(transfer(name) for name in prefetches)])
    units = [phase.name for segment in graph.segments for phase in segment.phases]
    selections = [each.name for each in graph.selections()]
    chosen = np.zeros(len(streams), np.bool_)
    chosen[[streams[name] for each in graph.selections() for name in consumed(each.phases)]] = True
    rows = np.array([graph.grain.tile_rows(stream) for stream in graph.streams], np.int64)
    edges = recorded.edges
    ticks = (edges.wait_ns, edges.start_ns, edges.guard_ns, machine.read_latency_ns)
    whole = np.array([segment.trips for segment in graph.segments], np.int64)
    arrays = Arrays(
        trips=np.minimum(whole, trips),
        whole_trips=whole,
        unit_first=_firsts([len(segment.phases) for segment in graph.segments]),
        part_first=_firsts([len(several) for several in parts]),
        members=_whole([[recorded.chosen.get((unit, trip), -1) for trip in range(trips)] for unit in units]),
        stream=_whole([-1 if p.vectors or not p.stream else streams[p.stream] for several in parts for p in several]),
        vectors=_whole([streams[p.vectors] if p.vectors else -1 for several in parts for p in several]),
        slice_of=_whole([[slices.first.get((name, trip), -1) for trip in range(trips)] for name in order]),
        slice_first=_firsts(slices.lengths),
        slice_rest=np.array(slices.rests, np.float64),
        tiles=_whole([graph.grain.tiles(stream) for stream in graph.streams]),
        rows=rows,
        need_ns=machine.descriptor_ns + rows * ROW_BYTES / machine.bytes_per_ns,
        chosen=chosen,
        transfer_slice=_whole([*(slices.first[transfer(name), 0] for name in prefetches), *(-1 for _ in selections)]),
        transfer_unit=_whole([*(-1 for _ in prefetches), *(units.index(name) for name in selections)]),
        ticks=np.array(ticks, np.float64),
        trip_ns=np.array([edges.loop_ns[segment.name] for segment in graph.segments], np.float64),
        member_ns=np.array([edges.loop_ns[unit] for unit in units], np.float64),
        tile_ns=np.array([edges.loop_ns[part] for part in order], np.float64),
        semaphores=recorded.semaphores,
        length=0,
    )
    fed = np.ones(recorded.semaphores + MOST_SLOTS * (len(streams) + 1), np.bool_)
    fed[: recorded.semaphores] = fed_by_hbm(slices.notes, recorded.semaphores)
    return Model(
        graph, arrays._replace(length=_length(arrays)), Columns.of(slices.notes), BurstColumns.of(slices.bursts), fed,
        machine.network.lanes, machine.in_flight, tuple(units), tuple(streams), (*prefetches, *selections),
    )  # fmt: skip


class _Slices:
    """The notes of all executions, those of one phase together, the messages in bursts."""

    def __init__(self, recorded: Recorded, order: Sequence[str]) -> None:
        gathering = Gathering(note for done in recorded.done.values() for note in done.notes)
        self.first: dict[tuple[str, int], int] = {}
        self.notes: list[Note] = []
        self.lengths: list[int] = []
        self.rests: list[float] = []
        place = {name: index for index, name in enumerate(order)}
        for key in sorted(recorded.done, key=lambda key: (place[key[0]], *key[1:])):
            self.first.setdefault(key[:2], len(self.lengths))
            notes = gathering.gathered(recorded.done[key].notes)
            self.notes += notes
            self.lengths.append(len(notes))
            self.rests.append(recorded.done[key].rest_ns)
        self.bursts = gathering.bursts()


def _enough_trips(graph: StepGraph) -> int:
    """One before the steady state and one after it, and as many in it as make a mean."""
    loops = [segment for segment in graph.segments if segment.trips > 2]
    wanted = [1, *(-(-PHASES // len(segment.phases)) for segment in loops)]
    wanted += [-(-SELECTIONS // len(segment.selections())) for segment in loops if segment.selections()]
    return 2 + max(wanted)


def _whole(values: Sequence[int] | Sequence[Sequence[int]]) -> np.ndarray:
    return np.array(values, np.int64)


def _firsts(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int64)


def _length(arrays: Arrays) -> int:
    """All notes, a wait and a start for every tile that is used, the first tiles of every ring, a mark a trip."""
    tiles = 0
    for segment, trips in enumerate(arrays.trips):
        for unit in range(arrays.unit_first[segment], arrays.unit_first[segment + 1]):
            executions = int(np.abs(arrays.members[unit, :trips]).sum())
            for part in range(arrays.part_first[unit], arrays.part_first[unit + 1]):
                stream = max(arrays.stream[part], arrays.vectors[part])
                tiles += executions * int(arrays.tiles[stream]) if stream >= 0 else 0
    return int(arrays.slice_first[-1]) + 3 * tiles + MOST_SLOTS * 4 + int(arrays.trips.sum())

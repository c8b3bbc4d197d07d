"""Which phases of a segment must stay behind which others: what orders of its phases are legal.

Two phases depend on each other where they touch the same bytes, scalars or semaphore and one of them writes; then they
stay in the order in which they are lowered. So do a transfer outside the streams and the phases around its window. The
trips of a segment follow each other whatever the order inside, so what one trip leaves to the next needs no edge of
its own. What peers may do meanwhile is left to the proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from schedc.ir.expr import Const, Counter, Element, Expr
from schedc.ir.program import Await, Compute, Loop, Op, Operand, Region, RemoteStart, Signal, Wait, walk
from schedc.lower.graph import Each, Phase, Segment, Site, StepGraph, VectorBlock
from schedc.schedule.accesses import EVERYTHING, Access, InFlight, accesses, in_flight

if TYPE_CHECKING:
    import networkx as nx

STREAMED = "streamed"
"""Stands for the slots of the rings: their order follows the phases."""


def issue_of(transfer: str) -> str:
    """The node of what is issued at the start of some phase: a prefetch, or the first tiles of a selection."""
    return f"issue of {transfer}"


@dataclass(frozen=True)
class _Node:
    """`ops` somewhere from `first` to `last`. The phase i stands at 2i + 1, what is issued at its start at 2i."""

    name: str
    ops: tuple[Op, ...]
    first: int
    last: int


def dependences(graph: StepGraph) -> dict[str, nx.DiGraph]:
    """Segment → its phases and what is issued in it; the `buffer` of an edge is the reason for it.

    A node says which semaphores it `sends` to on peers, and for which such it waits (`awaits`).
    """
    nodes = {segment.name: tuple(_nodes(graph, segment)) for segment in graph.segments}
    flying = in_flight(walk(tuple(op for segment in nodes.values() for node in segment for op in node.ops)))
    return {name: _graph(segment, flying) for name, segment in nodes.items()}


def _graph(nodes: Sequence[_Node], flying: InFlight) -> nx.DiGraph:
    import networkx as nx

    found = nx.DiGraph()
    users: dict[str, list[tuple[_Node, list[Access]]]] = {}
    arrivals = {semaphore for node in nodes for semaphore in _sent_to(node)}
    for node in nodes:
        waits = frozenset(op.semaphore.name for op in walk(node.ops) if isinstance(op, Wait | Await))
        found.add_node(node.name, sends=_sent_to(node), awaits=waits & arrivals)
        by_storage: dict[str, list[Access]] = {}
        for access in accesses(node.ops, flying):
            by_storage.setdefault(access.storage, []).append(access)
        by_storage.pop(STREAMED, None)
        for storage, own in by_storage.items():
            users.setdefault(storage, []).append((node, own))
    for barrier, _ in users.pop(EVERYTHING, ()):
        for node in nodes:
            _connect(found, barrier, node, EVERYTHING)
    for storage in sorted(users):
        for index, (node, own) in enumerate(users[storage]):
            for other, others in users[storage][index + 1 :]:
                if any(a.conflicts(b) for a in own for b in others):
                    _connect(found, node, other, storage)
    return found


def _sent_to(node: _Node) -> frozenset[str]:
    """The semaphores of peers that an exchange counts on."""
    remote = {op.arrived.name for op in walk(node.ops) if isinstance(op, RemoteStart)}
    return frozenset(remote | {op.semaphore.name for op in walk(node.ops) if isinstance(op, Signal) and op.peer})


def _connect(found: nx.DiGraph, a: _Node, b: _Node, storage: str) -> None:
    for before, behind in ((a, b), (b, a)):
        if before.last < behind.first and not found.has_edge(before.name, behind.name):
            found.add_edge(before.name, behind.name, buffer=storage)


def _nodes(graph: StepGraph, segment: Segment) -> Iterator[_Node]:
    place = {phase.name: index for index, phase in enumerate(segment.phases)}
    trip: Expr = Counter(segment.counter) if segment.trips > 1 else Const(0)
    for phase in segment.phases:
        at = 2 * place[phase.name] + 1
        yield _Node(phase.name, _ops(graph, phase, trip), at, at)
    for prefetch in segment.prefetches:
        window = 2 * place[prefetch.earliest], 2 * place[prefetch.latest]
        yield _Node(issue_of(prefetch.name), prefetch.ops(trip), *window)
    for each in segment.selections():
        window = 2 * place[each.selection.known], 2 * place[each.name]
        yield _Node(issue_of(each.name), (_members(each, (_tiles(each, "write"),)),), *window)


def _members(each: Each, ops: tuple[Op, ...]) -> Op:
    return Loop(each.counter, Element(each.selection.count, Const(0)), ops)


def _tiles(each: Each, access: Literal["read", "write"]) -> Op:
    """The first tiles of the members are started, or used."""
    member = Element(each.selection.ids, Counter(each.counter))
    return Compute("tiles", (Operand("tiles", access, Region(f"slots of {each.name}", 1, member)),))


def _ops(graph: StepGraph, phase: Phase | Each, trip: Expr) -> tuple[Op, ...]:
    if isinstance(phase, Phase):
        return phase.ops(_site(graph, phase, trip))
    member = Element(phase.selection.ids, Counter(phase.counter))
    inner = tuple(op for p in phase.phases for op in p.ops(_site(graph, p, trip, member)))
    return (_members(phase, (_tiles(phase, "read"), *inner)),)


def _site(graph: StepGraph, phase: Phase, trip: Expr, member: Expr | None = None) -> Site:
    """A place that tells a phase where it finds what it streams, without a ring."""
    vectors = graph.stream(phase.vectors) if phase.vectors else None
    if isinstance(vectors, VectorBlock):
        region = Region(STREAMED, vectors.unit_rows)
        return Site(trip, vectors=region, vector_block=vectors, member=member)
    if phase.stream is None:
        return Site(trip, member=member)
    stream = graph.stream(phase.stream)
    tile: Expr = Counter(f"tile_{phase.name}") if graph.grain.tiles(stream) > 1 else Const(0)
    return Site(trip, tile, Region(STREAMED, graph.grain.tile_rows(stream)), member=member)


def order_faults(depends: Mapping[str, nx.DiGraph], order: Mapping[str, Sequence[str]]) -> list[str]:
    """Of orders that name phases: which phase stands before one it depends on, and for what."""
    faults = []
    for segment, phases in order.items():
        place = {phase: index for index, phase in enumerate(phases)}
        faults += [
            f"order[{segment}] has {behind} before {before}, which must come first: both use {buffer}"
            for before, behind, buffer in depends[segment].edges(data="buffer")
            if before in place and behind in place and place[behind] < place[before]
        ]
    return faults


def issue_points(depends: nx.DiGraph, order: Sequence[str], transfer: str) -> tuple[str, ...]:
    """The phases, in this order, at whose start a transfer may be issued; empty if the order leaves it none."""
    node = issue_of(transfer)
    place = {phase: index for index, phase in enumerate(order)}
    first = max((place[phase] + 1 for phase in depends.predecessors(node) if phase in place), default=0)
    last = min((place[phase] for phase in depends.successors(node) if phase in place), default=len(order) - 1)
    return tuple(order[first : last + 1])

"""List scheduling: an order of a segment's phases in which other work stands between an exchange and the wait for it.

The phases are taken one after the other: of those whose predecessors are done the one that can start first, and of
several that can start at once the one with the longest way to the end of the segment (Graham 1969; "highest level
first"). The core is the only machine; an exchange takes its time between the sending phase and the waiting one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedc.schedule.plan import Problem, SegmentInfo

if TYPE_CHECKING:
    import networkx as nx


def list_order(problem: Problem, segment: SegmentInfo) -> tuple[str, ...]:
    """The phases of a segment, as lowered where nothing is known of their durations."""
    depends = problem.depends[segment.name].subgraph(segment.order)
    durations = dict.fromkeys(segment.order, 0.0)
    for phase in segment.phases:
        durations[phase.each or phase.name] += problem.durations.get(phase.name, 0.0)
    if not any(durations.values()):
        return segment.order
    graph = _Jobs(depends, segment.order, durations, _exchanges(problem, segment, durations, depends))
    return graph.listed()


def _exchanges(
    problem: Problem, segment: SegmentInfo, durations: Mapping[str, float], depends: nx.DiGraph
) -> dict[tuple[str, str], float]:
    """(sending phase, waiting phase) → ns that the exchange takes: what is waited for it and the work between."""
    found = {}
    place = {phase: index for index, phase in enumerate(segment.order)}
    for waiting, semaphores in depends.nodes(data="awaits"):
        sending = [p for p in segment.order[: place[waiting]] if depends.nodes[p]["sends"] & semaphores]
        if sending:
            between = segment.order[place[sending[-1]] + 1 : place[waiting]]
            stall = problem.stalls.get(waiting, 0.0)
            found[sending[-1], waiting] = stall + sum(durations[phase] for phase in between)
    return found


@dataclass(frozen=True)
class _Jobs:
    depends: nx.DiGraph
    order: Sequence[str]
    durations: Mapping[str, float]
    exchanges: Mapping[tuple[str, str], float]

    def listed(self) -> tuple[str, ...]:
        levels, place = self._levels(), {phase: index for index, phase in enumerate(self.order)}
        now, ended, listed = 0.0, dict[str, float](), list[str]()
        left = {phase: self.depends.in_degree(phase) for phase in self.order}
        while len(listed) < len(self.order):
            ready = [phase for phase in self.order if phase not in ended and not left[phase]]
            begins = {phase: max(now, self._earliest(phase, ended)) for phase in ready}
            chosen = min(ready, key=lambda phase: (begins[phase], -levels[phase], place[phase]))
            listed.append(chosen)
            now = ended[chosen] = begins[chosen] + self.durations[chosen]
            for behind in self.depends.successors(chosen):
                left[behind] -= 1
        return tuple(listed)

    def _earliest(self, phase: str, ended: Mapping[str, float]) -> float:
        before = self.depends.predecessors(phase)
        return max((ended[p] + self.exchanges.get((p, phase), 0.0) for p in before), default=0.0)

    def _levels(self) -> dict[str, float]:
        """The time from the start of each phase to the end of the segment, by the longest way."""
        levels: dict[str, float] = {}
        for phase in reversed(self.order):
            ways = (self.exchanges.get((phase, p), 0.0) + levels[p] for p in self.depends.successors(phase))
            levels[phase] = self.durations[phase] + max(ways, default=0.0)
        return levels

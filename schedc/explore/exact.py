"""The shortest period of a loop by a constraint solver (OR-tools CP-SAT): the yardstick of the search.

Modulo scheduling (Rau: Iterative Modulo Scheduling, MICRO 1994): a period P, every phase at a place in it, every
transfer somewhere before its use, a trip or two earlier if need be. The core does one thing at a time, so does the HBM,
over copies of the trip before and behind; the slots of all rings fit VMEM at every moment. P is as short as can be.
What the solver cannot see, sharing of the HBM and what a ring can start when, the simulation decides afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schedc.errors import UserError
from schedc.explore.period import Period, Tile, Work

COPIES = 3
"""Of a trip, that are laid out one after the other; a transfer starts at most so many trips but one before its use."""


@dataclass(frozen=True)
class Solved:
    """`order`: units by their begin; `live`: by stream's ring, most tiles in VMEM at once; `issue`: transfer → unit.

    `proven`: whether no shorter period is possible, in this model of the machine.
    """

    period_ns: int
    bound_ns: int
    proven: bool
    order: tuple[int, ...]
    live: Mapping[int, int]
    issue: Mapping[int, int]


def solve(
    period: Period, edges: Sequence[tuple[int, int]], ring_of: Sequence[int], rows: int, seconds: float, seed: int = 0
) -> Solved | None:
    """None if nothing was found in the time. `edges`: units that must stand before units. Raises UserError without
    ortools."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise UserError("the policy optimal needs the package ortools: pip install 'schedc[optimal]'") from None
    made = _Formulation(cp_model.CpModel(), period, ring_of)
    for work in period.works:
        made.add_work(work)
    for number, (need, user) in period.needs.items():
        made.add_transfer(number, need, user)
    made.close(edges, rows)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(made.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    at_begin = {unit: solver.value(variable) for unit, variable in made.begin.items()}
    order = tuple(sorted(at_begin, key=lambda unit: (at_begin[unit], unit)))
    found = int(solver.value(made.length))
    spans = [(ring, int(solver.value(a)), int(solver.value(b))) for ring, a, b in made.tiles]
    issued_at = {
        number: max((u for u in order if at_begin[u] <= solver.value(time)), key=order.index, default=order[0])
        for number, time in made.issue.items()
    }
    return Solved(
        found, int(solver.best_objective_bound), status == cp_model.OPTIMAL, order, _live(spans, found), issued_at
    )


class _Formulation:
    """The variables and constraints of a trip and its copies."""

    def __init__(self, model: Any, period: Period, ring_of: Sequence[int]) -> None:
        self.model, self.period, self.ring_of = model, period, ring_of
        work = sum(sum(w.pieces_ns) for w in period.works)
        moved = sum(t.need_ns for w in period.works for t in w.tiles) + sum(n for n, _ in period.needs.values())
        self.horizon = 2 * (work + moved + sum(period.lags.values()) + len(period.works) * period.latency_ns)
        self.length = model.new_int_var(max(work, moved), self.horizon, "period")
        self.begin: dict[int, Any] = {}
        self.end: dict[int, Any] = {}
        """By unit."""
        self.core: list[Any] = []
        self.hbm: list[Any] = []
        self.vmem: list[Any] = []
        self.demand: list[int] = []
        """Rows of each of `vmem`."""
        self.tiles: list[tuple[int, Any, Any]] = []
        """(ring, issued, free again)"""
        self.issue: dict[int, Any] = {}
        """By transfer."""

    def add_work(self, work: Work) -> None:
        """A unit: its pieces on the core one after the other, each behind its tile; the transfers that it starts."""
        before = None
        for at, piece in enumerate(work.pieces_ns):
            start = self.model.new_int_var(0, self.horizon, f"unit {work.unit} piece {at}")
            self.core.append(self.model.new_fixed_size_interval_var(start, piece, f"core {work.unit} {at}"))
            if before is None:
                self.begin[work.unit] = start
            else:
                self.model.add(start >= before)
            before = start + piece
            if at < len(work.tiles):
                self._add_tile(work.tiles[at], f"{work.unit} {at}", start, before)
        self.end[work.unit] = before
        for offset, need in work.starts:
            self._move(self.begin[work.unit] + offset, need)
        self.model.add(self.end[work.unit] <= self.length)

    def _add_tile(self, tile: Tile, name: str, start: Any, end: Any) -> None:
        """What a piece from `start` to `end` needs in VMEM."""
        issued = self.model.new_int_var(-(COPIES - 1) * self.horizon, self.horizon, f"tile {name}")
        self.model.add(issued + tile.need_ns + self.period.latency_ns <= start)
        self.model.add(issued >= start - (COPIES - 1) * self.length)
        gone = self.model.new_int_var(-self.horizon, self.horizon, f"free {name}")
        self.model.add(gone == end)
        self.tiles.append((self.ring_of[tile.stream], issued, gone))
        self._move(issued, tile.need_ns)
        self._hold(issued, gone)
        self.demand += [tile.rows] * COPIES

    def add_transfer(self, number: int, need: int, user: int) -> None:
        """Outside of the streams, before the unit that uses it."""
        issued = self.issue[number] = self.model.new_int_var(0, self.horizon, f"transfer {number}")
        self.model.add(issued + need + self.period.latency_ns <= self.begin[user])
        self._move(issued, need)

    def close(self, edges: Sequence[tuple[int, int]], rows: int) -> None:
        """What holds between units, and what they share: the core, the HBM and `rows` of VMEM."""
        for a, b in edges:
            if a in self.end and b in self.begin:
                self.model.add(self.end[a] <= self.begin[b])
        for (a, b), lag in self.period.lags.items():
            self.model.add(self.end[a] + lag <= self.begin[b])
        self.model.add_no_overlap(self.core)
        self.model.add_no_overlap(self.hbm)
        self.model.add_cumulative(self.vmem, self.demand, rows)
        self.model.minimize(self.length)

    def _move(self, start: Any, need: int) -> None:
        """A transfer in this trip and in those behind it."""
        for trip in range(COPIES):
            moved = self._anywhere()
            self.model.add(moved == start + trip * self.length)
            self.hbm.append(self.model.new_fixed_size_interval_var(moved, need, ""))

    def _hold(self, issued: Any, gone: Any) -> None:
        """A slot, from the start of its transfer to the end of its use, in this trip and in those behind it."""
        for trip in range(COPIES):
            a, b = self._anywhere(), self._anywhere()
            size = self.model.new_int_var(0, (COPIES + 1) * self.horizon, "")
            self.model.add(a == issued + trip * self.length)
            self.model.add(b == gone + trip * self.length)
            self.vmem.append(self.model.new_interval_var(a, size, b, ""))

    def _anywhere(self) -> Any:
        return self.model.new_int_var(-COPIES * self.horizon, (COPIES + 1) * self.horizon, "")


def _live(spans: Sequence[tuple[int, int, int]], length: int) -> dict[int, int]:
    """By ring, the most tiles that are in VMEM at once when trips follow each other every `length`."""
    found: dict[int, int] = {}
    for ring in {ring for ring, _, _ in spans}:
        own = [(a + trip * length, b + trip * length) for r, a, b in spans if r == ring for trip in range(-3, 4)]
        found[ring] = max(sum(1 for a, b in own if a <= moment < b) for moment, _ in own)
    return found

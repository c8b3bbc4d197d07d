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
from schedc.explore.period import Period

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
    model = cp_model.CpModel()
    work = sum(sum(w.pieces_ns) for w in period.works)
    moved = sum(t.need_ns for w in period.works for t in w.tiles) + sum(n for n, _ in period.needs.values())
    horizon = 2 * (work + moved + sum(period.lags.values()) + len(period.works) * period.latency_ns)
    length = model.new_int_var(max(work, moved), horizon, "period")
    begin: dict[int, Any] = {}
    end: dict[int, Any] = {}
    core: list[Any] = []
    hbm: list[Any] = []
    vmem: list[Any] = []
    demand: list[int] = []
    tiles: list[tuple[int, Any, Any]] = []
    for w in period.works:
        before = None
        for at, piece in enumerate(w.pieces_ns):
            start = model.new_int_var(0, horizon, f"unit {w.unit} piece {at}")
            core.append(model.new_fixed_size_interval_var(start, piece, f"core {w.unit} {at}"))
            if before is None:
                begin[w.unit] = start
            else:
                model.add(start >= before)
            before = start + piece
            if at < len(w.tiles):
                tile = w.tiles[at]
                issued = model.new_int_var(-(COPIES - 1) * horizon, horizon, f"tile {w.unit} {at}")
                model.add(issued + tile.need_ns + period.latency_ns <= start)
                model.add(issued >= start - (COPIES - 1) * length)
                gone = model.new_int_var(-horizon, horizon, f"free {w.unit} {at}")
                model.add(gone == start + piece)
                tiles.append((ring_of[tile.stream], issued, gone))
                _copies(model, length, issued, tile.need_ns, horizon, hbm)
                _held(model, length, issued, gone, horizon, vmem)
                demand += [tile.rows] * COPIES
        end[w.unit] = before
        for offset, need in w.starts:
            _copies(model, length, begin[w.unit] + offset, need, horizon, hbm)
        model.add(end[w.unit] <= length)
    issue = {}
    for number, (need, user) in period.needs.items():
        issue[number] = model.new_int_var(0, horizon, f"transfer {number}")
        model.add(issue[number] + need + period.latency_ns <= begin[user])
        _copies(model, length, issue[number], need, horizon, hbm)
    for a, b in edges:
        if a in end and b in begin:
            model.add(end[a] <= begin[b])
    for (a, b), lag in period.lags.items():
        model.add(end[a] + lag <= begin[b])
    model.add_no_overlap(core)
    model.add_no_overlap(hbm)
    model.add_cumulative(vmem, demand, rows)
    model.minimize(length)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    at_begin = {unit: solver.value(variable) for unit, variable in begin.items()}
    order = tuple(sorted(at_begin, key=lambda unit: (at_begin[unit], unit)))
    found = int(solver.value(length))
    spans = [(ring, int(solver.value(a)), int(solver.value(b))) for ring, a, b in tiles]
    issued_at = {
        number: max((u for u in order if at_begin[u] <= solver.value(time)), key=order.index, default=order[0])
        for number, time in issue.items()
    }
    return Solved(
        found, int(solver.best_objective_bound), status == cp_model.OPTIMAL, order, _live(spans, found), issued_at
    )


def _copies(model: Any, length: Any, start: Any, need: int, horizon: int, hbm: list[Any]) -> None:
    """A transfer in this trip and in those behind it."""
    for trip in range(COPIES):
        moved = model.new_int_var(-COPIES * horizon, (COPIES + 1) * horizon, "")
        model.add(moved == start + trip * length)
        hbm.append(model.new_fixed_size_interval_var(moved, need, ""))


def _held(model: Any, length: Any, issued: Any, gone: Any, horizon: int, vmem: list[Any]) -> None:
    """A slot, from the start of its transfer to the end of its use, in this trip and in those behind it."""
    for trip in range(COPIES):
        a = model.new_int_var(-COPIES * horizon, (COPIES + 1) * horizon, "")
        b = model.new_int_var(-COPIES * horizon, (COPIES + 1) * horizon, "")
        size = model.new_int_var(0, (COPIES + 1) * horizon, "")
        model.add(a == issued + trip * length)
        model.add(b == gone + trip * length)
        vmem.append(model.new_interval_var(a, size, b, ""))


def _live(spans: Sequence[tuple[int, int, int]], length: int) -> dict[int, int]:
    """By ring, the most tiles that are in VMEM at once when trips follow each other every `length`."""
    found: dict[int, int] = {}
    for ring in {ring for ring, _, _ in spans}:
        own = [(a + trip * length, b + trip * length) for r, a, b in spans if r == ring for trip in range(-3, 4)]
        found[ring] = max(sum(1 for a, b in own if a <= moment < b) for moment, _ in own)
    return found

"""What the core takes around the phases: trips of loops, waits, starts and guards, as the machine prices them.

A profile charges the edge of a loop by what its body computes last, so that the edges of a step differ by a hundred
cycles; they are asked for of the loops as they stand in the step graph. An order with another last phase in a loop over
layers has that one's edge in truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from schedc.cost.machine import Machine
from schedc.ir.expr import Compare, Const
from schedc.ir.program import Array, Loop, Op, Program, Region, SemaphoreRef, Start, Wait, When, walk
from schedc.lower.graph import Each, Phase, StepGraph

_WEIGHT = Array("streamed", 8, "weight")
_TILE = Start(Region(_WEIGHT.name, 8), Region("slot", 8), SemaphoreRef("arrived", Const(0)))
_PROBES: tuple[Op, ...] = (
    Wait(SemaphoreRef("arrived", Const(0)), 8),
    _TILE,
    When((Compare("==", Const(0), Const(0)),), ()),
)


@dataclass(frozen=True)
class Edges:
    """ns of the core: of one trip of a loop, by segment, selection or phase, and of each wait, start and guard."""

    loop_ns: Mapping[str, float]
    wait_ns: float
    start_ns: float
    guard_ns: float


def edges_of(graph: StepGraph, bodies: Mapping[str, tuple[Op, ...]], program: Program, machine: Machine) -> Edges:
    """`bodies` of the phases, as they stand in `program`, of which the declarations are taken."""
    named: list[tuple[str, Loop]] = []

    def loop(name: str, counter: str, body: tuple[Op, ...]) -> Loop:
        named.append((name, Loop(counter, Const(2), body)))
        return named[-1][1]

    def looped(phases: tuple[Phase | Each, ...]) -> Iterator[Op]:
        for phase in phases:
            inner = tuple(looped(phase.phases)) if isinstance(phase, Each) else bodies[phase.name]
            yield loop(phase.name, f"trip_{phase.name}", inner)

    body = tuple(loop(s.name, f"trip_{s.name}", tuple(looped(s.phases))) for s in graph.segments)
    whole = replace(program, arrays=(*program.arrays, _WEIGHT), body=(*body, *_PROBES))
    cycles = machine.priced(whole).cycles
    name_of = {f"trip_{name}": name for name, _ in named}
    loops = {
        name_of[op.counter]: cycles[number] / machine.clock_ghz
        for number, op in enumerate(walk(whole.body))
        if isinstance(op, Loop) and op.counter in name_of
    }
    wait, start, guard = (price / machine.clock_ghz for price in cycles[len(cycles) - len(_PROBES) :])
    return Edges(loops, wait, start, guard)

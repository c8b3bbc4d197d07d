"""The scalars of a step that is simulated: what is given to it, and what its computations are taken to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from schedc.cost.routing import DEFAULT_LOAD, Load, distinct_experts
from schedc.ir.program import Compute, Program, Scalars, walk

Inputs = Mapping[str, Sequence[float]]
"""Values of scalar arrays, by their names: integers, or expectations of what computations set."""


def default_inputs(
    program: Program,
    position: int | None = None,
    load: Load = DEFAULT_LOAD,
    active: Sequence[float] | None = None,
) -> dict[str, list[float]]:
    """Every row active, at `position` (the middle of the context if none is given); other inputs at their lowest.

    Of what computations set, what is to be expected of `active` rows where that is known (`EXPECTED`), which may be no
    whole number; else the most work: a single scalar, such as a number, at its highest, and in arrays as many different
    values as there are. Raises UserError for a load that is not of this program's routers.
    """
    computed = {array for op in walk(program.body) if isinstance(op, Compute) for _, array in op.sets}
    inputs: dict[str, list[float]] = {}
    for scalars in program.scalars:
        if scalars.name in computed:
            inputs[scalars.name] = _most(scalars)
        elif scalars.role == "input":
            middle = (scalars.high + 1) // 2
            chosen = {"active": scalars.high, "position": middle if position is None else position}
            inputs[scalars.name] = [chosen.get(scalars.name, scalars.low)] * scalars.length
            if scalars.distinct:
                inputs[scalars.name] = [
                    scalars.low + i % (scalars.high - scalars.low + 1) for i in range(scalars.length)
                ]
    return inputs | {name: [value] for name, value in expected_inputs(program, load, active).items()}


def first_values(program: Program, inputs: Inputs) -> dict[str, list[int]]:
    """What all scalar arrays hold when a step begins, by name, in the order of declaration; of what `inputs` gives as
    no whole number, the nearest."""
    return {
        s.name: [round(value) for value in inputs.get(s.name) or s.values or [s.low] * s.length]
        for s in program.scalars
    }


def expected_inputs(program: Program, load: Load, active: Sequence[float] | None = None) -> dict[str, float]:
    """Expected values of single scalars that computations set, where they are known."""
    limits = {scalars.name: scalars for scalars in program.scalars}
    expected: dict[str, float] = {}
    for op in walk(program.body):
        if isinstance(op, Compute) and op.kind in EXPECTED:
            values = EXPECTED[op.kind](op, load, active)
            for parameter, array in op.sets:
                if parameter in values and limits[array].length == 1:
                    expected[array] = min(max(values[parameter], limits[array].low), limits[array].high)
    return expected


def _most(scalars: Scalars) -> list[float]:
    if scalars.length == 1:
        return [scalars.high]
    values = range(scalars.low, scalars.high + 1)
    return [values[i % len(values)] for i in range(scalars.length)]


def _of_route(op: Compute, load: Load, active: Sequence[float] | None) -> dict[str, float]:
    """At least one expert: of a device that has none others are waited for, which have some."""
    given = dict(op.attributes)
    if not {"members", "experts", "top_k", "sequences"} <= given.keys():
        return {}
    members, experts, top_k, rows = (int(given[key]) for key in ("members", "experts", "top_k", "sequences"))
    if active is not None:
        rows = sum(1 for value in active[:rows] if value)
    found = distinct_experts(load, experts, top_k, rows, members)
    return {"count": max(1.0, round(found.of(load.experts), 3)) if rows else 0.0}


EXPECTED: Mapping[str, Callable[[Compute, Load, Sequence[float] | None], dict[str, float]]] = {"route": _of_route}
"""Kind of computation → by parameter, what it is expected to set."""

"""The scalars of a step that is simulated: what is given to it, and what its computations are taken to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedc.ir.program import Compute, Program, Scalars, walk


def default_inputs(program: Program, position: int | None = None) -> dict[str, list[int]]:
    """Every row active, at `position` (the middle of the context if none is given); other inputs at their lowest.

    Of what computations set, what is to be expected where that is known (`EXPECTED`); else the most work: a single
    scalar, such as a number, at its highest, and in arrays as many different values as there are.
    """
    computed: dict[str, int | None] = {}
    for op in walk(program.body):
        if isinstance(op, Compute):
            expected = EXPECTED[op.kind](op) if op.kind in EXPECTED else {}
            computed |= {array: expected.get(parameter) for parameter, array in op.sets}
    inputs = {}
    for scalars in program.scalars:
        if scalars.name in computed:
            inputs[scalars.name] = _found(scalars, computed[scalars.name])
        elif scalars.role == "input":
            middle = (scalars.high + 1) // 2
            chosen = {"active": scalars.high, "position": middle if position is None else position}
            inputs[scalars.name] = [chosen.get(scalars.name, scalars.low)] * scalars.length
            if scalars.distinct:
                inputs[scalars.name] = [
                    scalars.low + i % (scalars.high - scalars.low + 1) for i in range(scalars.length)
                ]
    return inputs


def _found(scalars: Scalars, expected: int | None) -> list[int]:
    if scalars.length == 1:
        return [scalars.high if expected is None else min(expected, scalars.high)]
    values = range(scalars.low, scalars.high + 1)
    return [values[i % len(values)] for i in range(scalars.length)]


def expected_experts(members: int, experts: int, top_k: int, rows: int) -> int:
    """How many of a device's `members` are chosen, if every row chooses `top_k` of all experts alike and by itself.

    Real routers prefer some experts, and rows of one text are alike: then there are fewer. Rows that are the same
    choose `top_k` at any number of rows. At least one: the devices wait for those that have one.
    """
    return max(1, round(members * (1.0 - (1.0 - top_k / experts) ** rows)))


def _of_route(op: Compute) -> dict[str, int]:
    given = dict(op.attributes)
    if not {"members", "experts", "top_k", "sequences"} <= given.keys():
        return {}
    members, experts, top_k, rows = (int(given[key]) for key in ("members", "experts", "top_k", "sequences"))
    return {"count": expected_experts(members, experts, top_k, rows)}


EXPECTED: Mapping[str, Callable[[Compute], dict[str, int]]] = {"route": _of_route}
"""Kind of computation → by parameter, what it is expected to set."""

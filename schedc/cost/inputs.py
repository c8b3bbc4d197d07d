"""The scalars of a step that is simulated: what is given to it, and what its computations are taken to find."""

from __future__ import annotations

from schedc.ir.program import Compute, Program, Scalars, walk


def default_inputs(program: Program, position: int | None = None) -> dict[str, list[int]]:
    """Every row active, at `position` (the middle of the context if none is given); other inputs at their lowest.

    Of what computations set, the most work: a single scalar, such as a number of experts, at its highest, and in
    arrays as many different values as there are.
    """
    computed = {array for op in walk(program.body) if isinstance(op, Compute) for _, array in op.sets}
    inputs = {}
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
    return inputs


def _most(scalars: Scalars) -> list[int]:
    if scalars.length == 1:
        return [scalars.high]
    values = range(scalars.low, scalars.high + 1)
    return [values[i % len(values)] for i in range(scalars.length)]

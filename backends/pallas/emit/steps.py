"""`decode_steps`: several decode steps in one call, a loop of XLA around the kernel."""

from __future__ import annotations

from schedc.backends.pallas.emit.call import first_state
from schedc.backends.pallas.emit.interface import inputs, outputs, states
from schedc.ir.program import Program

_FED = ("token", "position", "active")
"""The inputs that change from step to step, in this order before the others."""
_UNCHANGED = {"page"}
"""Inputs that are the same in every step of a call."""


def can_feed_back(program: Program) -> bool:
    """Whether a step's output `ids` can be the next step's `token`, a row each: else there is no `decode_steps`."""
    given = inputs(program)
    names, lengths = [scalars.name for scalars in given], {scalars.length for scalars in given[: len(_FED)]}
    feeds = tuple(names[: len(_FED)]) == _FED and len(lengths) == 1 and set(names[len(_FED) :]) <= _UNCHANGED
    return feeds and any(array.name == "ids" for array in outputs(program))


def steps_lines(program: Program) -> list[str]:
    """The function, or no lines where a step does not feed the next."""
    if not can_feed_back(program):
        return []
    token, position, *_ = inputs(program)
    fixed, kept, made = first_state(program) - len(_FED), len(states(program)), len(outputs(program))
    ids = [array.name for array in outputs(program)].index("ids")
    one, each = ("PartitionSpec()",) * 2
    if program.devices > 1:
        one, each = 'PartitionSpec("device")', 'PartitionSpec(None, "device")'
    return [
        "",
        "",
        "def decode_steps(mesh, steps, *, ends=(), interpret=False):",
        '    """`steps` steps in one jitted call: as `decode_step`; outputs but STATE get a dimension in front.',
        "",
        "    A step takes the ids of the one before, one position further. A row is inactive, its ids -1, after an",
        f"    id of `ends` and after position {position.high}, where its context is full.",
        '    """',
        "    step = step_on_device(interpret)",
        "",
        "    def on_device(token, position, active, *others):",
        f"        fixed, states = others[:{fixed}], others[{fixed}:]",
        "",
        "        def one_step(carried, _):",
        "            token, position, active, *states = carried",
        "            results = step(token, position, active, *fixed, *states)",
        f"            states, outputs = results[:{kept}], results[{kept}:]",
        f"            ids = outputs[{ids}][:{token.length}, 0]",
        f"            goes_on = (active != 0) & (position < {position.high})",
        "            for end in ends:",
        "                goes_on &= ids != end",
        "            token, active = jnp.where(goes_on, ids, token), goes_on.astype(jnp.int32)",
        "            return (token, position + active, active, *states), tuple(outputs)",
        "",
        "        carried, outputs = lax.scan(one_step, (token, position, active, *states), length=steps)",
        "        return (*carried[3:], *outputs)",
        "",
        f"    return on_mesh(mesh, on_device, ({one},) * {kept} + ({each},) * {made})",
    ]

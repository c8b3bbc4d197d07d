"""The one module of ours that knows how the supported jax lines (0.10.2, 0.12) differ.

Generated kernels import only jax, so they keep to spellings that both lines have; see docs/decisions.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas import races

VECTOR_CLOCKS = 256  # The default is too small for the race detector to tell transfers apart: it then misses races.


def interpret_params(mode: Literal["eager", "on_wait"], detect_races: bool = True) -> Any:
    """Interpreter settings for `pallas_call(interpret=…)`: NaN-filled memory, transfers performed as `mode` says.

    A race is recorded, never raised, on both lines: ask `races_found()` after the call.
    """
    settings: dict[str, Any] = {
        "dma_execution_mode": mode,
        "detect_races": detect_races,
        "uninitialized_memory": "nan",
        "vector_clock_size": VECTOR_CLOCKS,
    }
    if detect_races:
        races.compare_strided_slices()
        races.compare_within_blocks()
    if "on_race" in {field.name for field in dataclasses.fields(pltpu.InterpretParams)}:
        settings["on_race"] = "warn"
    return pltpu.InterpretParams(**settings)


def races_found() -> bool:
    """Whether the last interpreted call in this process raced. `reset_interpreter()` forgets it."""
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call

    return bool(interpret_pallas_call.races and interpret_pallas_call.races.races_found)


def reset_interpreter() -> None:
    """Forget the interpreter's memory and races. Required after an interpreted call has raised."""
    pltpu.reset_tpu_interpret_mode_state()


def exact_locations(helpers: str) -> None:
    """Make the compiler's source lines those of the schedule, for the rest of the process.

    By itself jax gives an operation (1) the line inside a helper function, not that of its call, (2) the line of the
    first operation with the same types, whose lowering is cached, and (3) inside a jitted function of jax, the line of
    the first call. Here functions whose file name starts with `helpers` are skipped, the cache is off, and a jitted
    function gives its operations the line of the call. The program that is compiled stays the same.
    """
    from jax._src import pjit, source_info_util
    from jax._src.pallas.mosaic import lowering

    source_info_util.register_exclusion(helpers)
    for rules in lowering.lowering_rules.values():
        lowering._uncacheable_primitives.update(rules)
        if pjit.jit_p in rules:
            rules[pjit.jit_p] = _at_the_call(rules[pjit.jit_p])


def _at_the_call(rule: Callable[..., Any]) -> Callable[..., Any]:
    from jax._src import source_info_util

    def lower(ctx: Any, *args: Any, jaxpr: Any, **params: Any) -> Any:
        call = source_info_util.current().traceback
        inner = getattr(jaxpr, "jaxpr", jaxpr)  # Closed on 0.10.2.
        moved = inner.replace(eqns=[e.replace(source_info=e.source_info.replace(traceback=call)) for e in inner.eqns])
        return rule(ctx, *args, jaxpr=moved if inner is jaxpr else jaxpr.replace(jaxpr=moved), **params)

    return lower

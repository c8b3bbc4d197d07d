"""The one module of ours that knows how the supported jax lines (0.10.2, 0.12) differ.

Generated kernels import only jax, so they keep to spellings that both lines have; see docs/decisions.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any, Literal

from jax.experimental.pallas import tpu as pltpu

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
        _compare_strided_slices()
        _compare_within_blocks()
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


def _compare_strided_slices() -> None:
    """Let the race detector compare strided accesses exactly; by itself it stops at an assertion on both lines."""
    race_detection_state: Any = importlib.import_module("jax._src.pallas.mosaic.interpret.race_detection_state")
    race_detection_state._slices_overlap = _slices_overlap


def _slices_overlap(first: slice | int, second: slice | int) -> bool:
    """Whether two indices, or slices with known ends, have an element in common; `slice(None)` has all."""
    a, b = (_elements(index) for index in (first, second))
    if a is None or b is None:
        return (a is None or len(a) > 0) and (b is None or len(b) > 0)
    if not a or not b or a[-1] < b[0] or b[-1] < a[0]:
        return False
    few, many = sorted((a, b), key=len)
    return any(element in many for element in few) if max(a.step, b.step) > 1 else True


def _elements(index: slice | int) -> range | None:
    if not isinstance(index, slice):
        return range(int(index), int(index) + 1)
    if index == slice(None):
        return None
    return range(int(index.start or 0), int(index.stop), int(index.step or 1))


BLOCK = 64  # Rows.


def _compare_within_blocks() -> None:
    """Let the race detector compare an access only with those to the same block of rows, not all to the same buffer.

    It has a list of all accesses to a buffer and walks it at every access: most of the time of an interpreted kernel
    whose buffers all lie in one pool. Here every block has a list, and an access is on the lists of all its blocks.
    """
    race_detection_state: Any = importlib.import_module("jax._src.pallas.mosaic.interpret.race_detection_state")
    state = race_detection_state.RaceDetectionState
    if not hasattr(state, "compares_blocks"):
        state.compares_blocks = True
        state.check_read, state.check_write = _by_block(state.check_read), _by_block(state.check_write)


def _by_block(check: Callable[..., None]) -> Callable[..., None]:
    def check_blocks(state: Any, *access: Any, source_info: Any = None) -> None:
        *where, buffer, indices = access
        rows = _elements(indices[0]) if indices else None
        with state.lock:
            seen: dict[int | None, None] = state.__dict__.setdefault("blocks", {}).setdefault(buffer, {None: None})
            if rows is None:  # The whole buffer: with all blocks so far, and from `None` with those to come.
                blocks = list(seen)
            else:
                blocks = list(range(rows[0] // BLOCK, rows[-1] // BLOCK + 1)) if rows else []
                for block in blocks:
                    if block not in seen:
                        seen[block] = None
                        for accesses in (state.reads, state.writes):
                            accesses[buffer, block] = list(accesses[buffer, None])
        for block in blocks:
            check(state, *where, (buffer, block), indices, source_info=source_info)

    return check_blocks


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

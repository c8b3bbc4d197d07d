"""Comparing accesses within blocks of rows finds the races that comparing all with all finds."""

import importlib.util
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedc.backends.pallas import compat

pytestmark = pytest.mark.kernel

THREADS = 3
Access = tuple[str, int, bool, Any]
"""read or write, thread, whether the thread first waits for all others, index of the rows (None: not given)."""


class Clock(np.ndarray):
    def ordered(self, other: "Clock") -> bool:
        return bool((self <= other).all() or (other <= self).all())


def detector() -> ModuleType:
    """A copy of the detector's module as jax has it, but for strided slices."""
    spec = importlib.util.find_spec("jax._src.pallas.mosaic.interpret.race_detection_state")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module._slices_overlap = compat._slices_overlap  # type: ignore[attr-defined]
    return module


PLAIN, BLOCKS = detector(), detector()
for check in ("check_read", "check_write"):
    by_block = compat._by_block(getattr(BLOCKS.RaceDetectionState, check))
    setattr(BLOCKS.RaceDetectionState, check, by_block)
ONE_THREAD_ARGUMENT = "num_cores" not in PLAIN.RaceDetectionState.__dataclass_fields__


def races_after_each(module: ModuleType, accesses: list[Access]) -> list[bool]:
    settings = {"on_race": "warn"} if ONE_THREAD_ARGUMENT else {"num_cores": THREADS}
    state = module.RaceDetectionState(**settings)
    clocks = [np.zeros(THREADS, np.int32).view(Clock) for _ in range(THREADS)]
    races = []
    for kind, thread, waits, index in accesses:
        if waits:
            clocks[thread] = np.maximum.reduce(clocks).view(Clock)
        clocks[thread][thread] += 1
        who = ((0, thread),) if ONE_THREAD_ARGUMENT else (0, thread)
        indices = () if index is None else (index, slice(0, 128))
        getattr(state, f"check_{kind}")(*who, clocks[thread].copy(), ("vmem", 1), indices)
        races.append(state.races_found)
    return races


def access() -> st.SearchStrategy[Access]:
    first = st.integers(0, 300)
    rows = st.builds(lambda low, count: slice(low, low + count), first, st.integers(0, 200))
    strided = st.builds(
        lambda low, count, step: slice(low, low + count * step, step), first, st.integers(1, 8), st.integers(2, 40)
    )
    index = st.one_of(rows, rows, strided, first, st.just(slice(None)), st.none())
    return st.tuples(st.sampled_from(["read", "write"]), st.integers(0, THREADS - 1), st.booleans(), index)


@given(st.lists(access(), max_size=8))
def test_the_same_access_is_the_first_that_races(accesses: list[Access]) -> None:
    assert races_after_each(BLOCKS, accesses) == races_after_each(PLAIN, accesses)

"""Comparing accesses within blocks of rows, but for those that others hide, finds the races that comparing all with all
finds."""

import importlib.util
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedc.backends.pallas import races

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
    module._slices_overlap = races.slices_overlap  # type: ignore[attr-defined]
    return module


PLAIN, BLOCKS = detector(), detector()
for check, hidden in (("check_read", ("reads",)), ("check_write", ("reads", "writes"))):
    by_block = races.by_block(getattr(BLOCKS.RaceDetectionState, check), *hidden)
    setattr(BLOCKS.RaceDetectionState, check, by_block)
ONE_THREAD_ARGUMENT = "num_cores" not in PLAIN.RaceDetectionState.__dataclass_fields__


def races_of_each(module: ModuleType, accesses: list[Access]) -> list[bool]:
    """Whether each of them races with one before it."""
    return checked(module, accesses)[1]


def checked(module: ModuleType, accesses: list[Access]) -> tuple[Any, list[bool]]:
    """The detector's state behind them, and whether each races."""
    settings = {"on_race": "warn"} if ONE_THREAD_ARGUMENT else {"num_cores": THREADS}
    state = module.RaceDetectionState(**settings)
    clocks = [np.zeros(THREADS, np.int32).view(Clock) for _ in range(THREADS)]
    found = []
    for kind, thread, waits, index in accesses:
        if waits:
            clocks[thread] = np.maximum.reduce(clocks).view(Clock)
        clocks[thread][thread] += 1
        who = ((0, thread),) if ONE_THREAD_ARGUMENT else (0, thread)
        indices = () if index is None else (index, slice(0, 128))
        getattr(state, f"check_{kind}")(*who, clocks[thread].copy(), ("vmem", 1), indices)
        found.append(state.races_found)
        state.races_found = False
    return state, found


def access() -> st.SearchStrategy[Access]:
    first = st.integers(0, 300)
    rows = st.builds(lambda low, count: slice(low, low + count), first, st.integers(0, 200))
    strided = st.builds(
        lambda low, count, step: slice(low, low + count * step, step), first, st.integers(1, 8), st.integers(2, 40)
    )
    index = st.one_of(rows, rows, strided, first, st.just(slice(None)), st.none())
    return st.tuples(st.sampled_from(["read", "write"]), st.integers(0, THREADS - 1), st.booleans(), index)


@given(st.lists(access(), max_size=12))
def test_the_same_accesses_race(accesses: list[Access]) -> None:
    assert races_of_each(BLOCKS, accesses) == races_of_each(PLAIN, accesses)


def listed(accesses: list[Access]) -> int:
    """How many accesses are left to compare the next one with."""
    state = checked(BLOCKS, accesses)[0]
    return max(map(len, (*state.reads.values(), *state.writes.values())))


def test_lists_do_not_grow_with_accesses_that_wait_for_those_before() -> None:
    reads_and_writes: list[Access] = [
        (kind, thread, True, slice(row, row + 8))
        for thread in range(THREADS)
        for row in (0, 8)
        for kind in ("read", "write")
    ]
    assert listed(reads_and_writes * 50) == listed(reads_and_writes) <= 2


def test_lists_keep_accesses_of_threads_that_do_not_wait() -> None:
    assert listed([("read", thread, False, slice(0, 8)) for thread in range(THREADS)]) == THREADS

"""How long a step of a compiled kernel takes on the devices that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Protocol

from schedc.errors import CheckFailed, UserError
from schedc.run.platform import has_tpu_devices


class Steps(Protocol):
    """What is timed: a `Decoder`."""

    def steps(self, count: int, tokens: Sequence[int], positions: Sequence[int]) -> Any: ...


@dataclass(frozen=True)
class Timing:
    """Over calls of `steps` steps and of twice as many: µs of a step more, and of a call beside its steps."""

    steps: int
    calls: int
    step_us: float
    best_us: float
    worst_us: float
    call_us: float


def require_tpu(devices: int, kind: str, has_tpu: Callable[[], bool] = has_tpu_devices) -> None:
    """Raises CheckFailed where there is nothing to be timed: an interpreted step says nothing about a chip."""
    if not has_tpu():
        raise CheckFailed(
            f"there is no TPU on this machine (no /dev/accel* and no /dev/vfio/N); timing this kernel needs {devices} "
            f"device{'' if devices == 1 else 's'} of {kind}. `schedc compile` predicts its time without one"
        )


def time_steps(
    decoder: Steps, rows: int, position: int, steps: int, calls: int, clock: Callable[[], float] = perf_counter
) -> Timing:
    """Every call starts at `position` again, with all rows on the same token; `clock` in seconds.

    A step is half of what twice as many steps take longer, so that what a call costs is not in it: the median of
    `calls` pairs, its best and its worst.
    """
    if steps < 1 or calls < 1:
        raise UserError(f"{steps} steps a call, {calls} calls: both must be 1 or more")
    tokens, positions = [1] * rows, [position] * rows

    def call(count: int) -> float:
        began = clock()
        decoder.steps(count, tokens, positions)
        return (clock() - began) * 1e6

    for count in (steps, 2 * steps):
        call(count)  # compiles
    pairs = [(call(steps), call(2 * steps)) for _ in range(calls)]
    each = [(long - short) / steps for short, long in pairs]
    step_us = median(each)
    return Timing(steps, calls, step_us, min(each), max(each), median(short for short, _ in pairs) - steps * step_us)

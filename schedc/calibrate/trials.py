"""What the authors found when they tried settings of their kernel: differences, which are predicted as differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schedc.calibrate.constants import Values
from schedc.calibrate.experiments import in_step, step_us, us
from schedc.cost.machine import Machine
from schedc.published.muse_spark import benchmarks as bench
from schedc.published.muse_spark.exchanges import all_reduce
from schedc.published.muse_spark.variant import LAYERS, Variant

INT4, NVFP4 = Variant(), Variant(1, "nvfp4")
SMALLEST_KIB, LARGEST_KIB = 64, 1024


@dataclass(frozen=True)
class Trial:
    """`found`: what they report, in `unit`; negative: it is quicker."""

    name: str
    found: float
    unit: str
    source: str
    predict: Callable[[Machine, Values], float]
    at_most: bool = False
    """It gains `found` at most: nothing more is said of it."""

    def agrees(self, predicted: float) -> bool:
        """The same direction; where nothing was gained, no gain beyond that."""
        return -predicted <= self.found if self.at_most else predicted * self.found > 0


def _gain(new: Variant, old: Variant, layers: int = 1) -> Callable[[Machine, Values], float]:
    return lambda m, v: (step_us(new, m, v) - step_us(old, m, v)) / layers


def _int8_in_place(machine: Machine, values: Values) -> float:
    """As theirs is derived: the steps of nvfp4 experts with int8 and with bf16, less what the head gains alone."""
    whole = step_us(Variant(1, "nvfp4", "int8"), machine, values) - step_us(NVFP4, machine, values)
    return (whole - _alone(bench.lm_head, machine)) / LAYERS


def _alone(stream, machine: Machine) -> float:
    return us(stream(Variant(8, "nvfp4", "int8")), machine) - us(stream(Variant(8)), machine)


def _deeper(machine: Machine, values: Values) -> float:
    """The dense weights of a layer by themselves, of 16 slots less of 8."""
    deep, shallow = (us(bench.dense_layer(Variant(8, ring_slots=slots)), machine) for slots in (16, 8))
    return (deep / shallow - 1.0) * 100.0


def hierarchical_pays_from(machine: Machine) -> float:
    """KiB of f32 from which an all-reduce chip by chip is the quicker one."""
    machine = in_step(machine)

    def gain(kib: int) -> float:
        flat, levels = (
            us(bench.collective(all_reduce("reduced", 2 * kib, "f32", by)), machine) for by in (False, True)
        )
        return flat - levels

    low, high = SMALLEST_KIB, LARGEST_KIB
    while high - low > 8:
        middle = (low + high) // 2 // 4 * 4
        low, high = (low, middle) if gain(middle) > 0 else (middle, high)
    return (low + high) / 2


TRIALS = (
    Trial(
        "refills deferred behind the first experts",
        -14.0,
        "µs a step",
        "FACTS",
        _gain(INT4, Variant(defer_refills=False)),
    ),
    Trial(
        "tiles of the cache at the layer's start",
        -4.5,
        "µs a layer",
        "FACTS",
        _gain(INT4, Variant(early_kv=False), LAYERS),
    ),
    Trial("bf16 for f32 on the wire", -2.8, "µs a layer", "FACTS", _gain(INT4, Variant(wire="f32"), LAYERS)),
    Trial("int8 dense in place", -3.9, "µs a layer", "FACTS", _int8_in_place),
    Trial("int8 dense alone", -8.9, "µs a layer", "FACTS", lambda m, v: _alone(bench.dense_layer, m)),
    Trial(
        "a ring of 16 slots for 8, dense weights alone",
        1.0,
        "%",
        "FACTS: gains nothing",
        lambda m, v: _deeper(m, v),
        True,
    ),
    Trial("hierarchical all-reduce pays from", 370.0, "KiB", "FACTS", lambda m, v: hierarchical_pays_from(m)),
)

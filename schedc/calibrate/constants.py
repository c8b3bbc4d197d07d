"""The physical constants that are fitted, within what is plausible of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from schedc.cost.machine import Machine
from schedc.published.muse_spark.prices import with_measured
from schedc.target.target import Target


@dataclass(frozen=True)
class Constant:
    """`figure` is the field of the chip's cost section that it is.

    Where its authors give a value of their own, `published` and how far from it the fit may go for one standard error:
    their fit of streams pins the rate and the descriptors, which the rows here hardly tell apart.
    """

    figure: str
    low: float
    high: float
    start: float
    """Where a fit begins: what is published of it, if anything is."""
    what: str
    published: float | None = None
    spread: float = 1.0


STEP_US, IN_FLIGHT = "step_us", "hbm_in_flight"

CHIP = (
    Constant(
        "hbm_stream_gb_s", 2900.0, 3690.0, 3460.0, "what a stream of transfers gets of the HBM, GB/s", 3460.0, 70.0
    ),
    Constant("dma_descriptor_ns", 0.0, 120.0, 45.0, "what each transfer costs beside its bytes, ns", 45.0, 15.0),
    Constant("sibling_latency_us", 0.4, 2.5, 2.2, "to the other device of the chip, µs"),
    Constant("link_latency_us", 0.4, 2.5, 2.1, "to a device of a neighbouring chip, µs"),
    Constant("link_hop_us", 0.0, 1.0, 0.05, "more for each hop beyond, µs"),
    Constant("link_shared_gb_s", 46.0, 200.0, 100.0, "a link's rate, of all that goes over it, GB/s"),
    Constant("exchange_skew_us", 0.0, 3.0, 1.0, "that peers come late to an exchange of a step, µs"),
)
"""Of the chip, fitted by least squares; `hbm_in_flight`, a whole number, is chosen by trying."""

OUTSIDE = "of a step outside of its kernel: XLA's embedding and psum, dispatch, µs"

FREE = (*CHIP, Constant(STEP_US, 20.0, 120.0, 70.0, OUTSIDE, 70.0, 15.0))

Values = Mapping[str, float]


def machine_of(target: Target, values: Values) -> Machine:
    """The machine of a target with these constants in the place of those of its chip."""
    figures: dict[str, float] = {name: value for name, value in values.items() if name != STEP_US}
    figures[IN_FLIGHT] = round(figures[IN_FLIGHT])
    cost = target.cost.model_copy(update=figures)
    changed = replace(target, chip=target.chip.model_copy(update={"cost": cost}))
    return with_measured(Machine.of(changed))

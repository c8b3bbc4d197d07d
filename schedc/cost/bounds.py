"""What no schedule of the same transfers and computations can beat, and how far a step is from it."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.cost.timeline import Timeline
from schedc.ir.program import Program


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of a step, each alone in ns.

    `hbm_ns`: every byte that moves, once, at the fitted stream rate, descriptors free.
    `compute_ns`: the issue cycles of computations, one after the other.
    `latency_ns`: the program's own chain of starts and waits if bandwidth and instructions were free. It belongs to
    this order of starts; the other two belong to the model, its tiles' padding included.
    """

    hbm_ns: float
    compute_ns: float
    latency_ns: float

    @property
    def largest(self) -> tuple[str, float]:
        named = {"hbm": self.hbm_ns, "compute": self.compute_ns, "latency": self.latency_ns}
        return max(named.items(), key=lambda item: item[1])

    def distances(self, step_ns: float) -> dict[str, float | None]:
        """step / bound for each bound; None where the bound is 0."""
        named = {"hbm": self.hbm_ns, "compute": self.compute_ns, "latency": self.latency_ns}
        return {name: step_ns / bound if bound else None for name, bound in named.items()}


def bounds(program: Program, machine: Machine, timeline: Timeline, inputs: Inputs | None = None) -> Bounds:
    """The bounds of the step that `timeline` is the simulation of, with the same inputs."""
    return Bounds(
        hbm_ns=timeline.hbm_bytes / machine.bytes_per_ns,
        compute_ns=sum(phase.compute_cycles for phase in timeline.phases) / machine.clock_ghz,
        latency_ns=simulate(program, machine.without_work(), inputs).step_ns,
    )

"""What no schedule of the same transfers and computations can beat, and how far a step is from it.

- `hbm`: every byte that the step moves between HBM and VMEM, once, at the fitted stream rate, descriptors and latency
  free. With the slowest device's experts (`routing.py`) these are the slowest device's bytes.
- `compute`: the issue cycles of all computations, one after the other on the one core, starts and waits free.
- `latency`: the program's own chain of starts and waits if bandwidth and instructions were free. It belongs to this
  order of starts; all others belong to the model, its placement, its tiles' padding and its collectives.
- `exchanges`: the longest chain of exchanges between devices of which each sends what was made of what arrived in the
  one before, with everything else for nothing (`dependence.py`).
- `dependence`: the longest chain of dependent computations, exchanges and transfers, read after write through the rows
  of buffers, with HBM infinitely fast and all independent work for nothing.
- `one_core`: the same, but all computations that lie between two exchanges share the one core (`one_core.py`).

The last three need a traced step. Every bound is a lower bound alone; the largest is the one that binds. With each goes
the largest part of it: of `hbm` the array, of `compute` the kind, of chains the kind or `exchange`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schedc.cost.dependence import dependences, longest_chain
from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.one_core import one_core_ns
from schedc.cost.simulate import simulate
from schedc.cost.timeline import Timeline
from schedc.cost.trace import Trace
from schedc.ir.program import Program

Part = tuple[str, float]
"""What is the largest part of a bound, and its share of it."""


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of a step, each alone in ns; the last three are None for a step without a trace."""

    hbm_ns: float
    compute_ns: float
    latency_ns: float
    exchanges_ns: float | None = None
    dependence_ns: float | None = None
    one_core_ns: float | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    """The largest part of each bound that has any."""

    @property
    def named(self) -> dict[str, float]:
        """Those that are known."""
        every = {
            "hbm": self.hbm_ns,
            "compute": self.compute_ns,
            "latency": self.latency_ns,
            "exchanges": self.exchanges_ns,
            "dependence": self.dependence_ns,
            "one_core": self.one_core_ns,
        }
        return {name: ns for name, ns in every.items() if ns is not None}

    @property
    def largest(self) -> tuple[str, float]:
        return max(self.named.items(), key=lambda item: item[1])

    def distances(self, step_ns: float) -> dict[str, float | None]:
        """step / bound for each bound; None where the bound is 0."""
        return {name: step_ns / bound if bound else None for name, bound in self.named.items()}


def bounds(program: Program, machine: Machine, timeline: Timeline, inputs: Inputs | None = None) -> Bounds:
    """The bounds of the step that `timeline` is the simulation of, with the same inputs."""
    moved = dict(timeline.read)
    for name, size in timeline.written.items():
        moved[name] = moved.get(name, 0) + size
    parts = {"hbm": _largest(moved)}
    exchanges = dependence = one_core = None
    if timeline.trace is not None:
        known = dependences(timeline.trace)
        exchange, chain = longest_chain(known, compute=False), longest_chain(known)
        exchanges, dependence, one_core = exchange.ns, chain.ns, one_core_ns(known)
        parts["compute"] = _largest(_by_kind(timeline.trace))
        parts["exchanges"] = _largest(exchange.parts or {})
        parts["dependence"] = _largest(chain.parts or {})
    return Bounds(
        hbm_ns=timeline.hbm_bytes / machine.bytes_per_ns,
        compute_ns=sum(phase.compute_cycles for phase in timeline.phases) / machine.clock_ghz,
        latency_ns=simulate(program, machine.without_work(), inputs).step_ns,
        exchanges_ns=exchanges,
        dependence_ns=dependence,
        one_core_ns=one_core,
        parts={name: part for name, part in parts.items() if part is not None},
    )


def _largest(parts: Mapping[str, float]) -> Part | None:
    total = sum(parts.values())
    if not total:
        return None
    name, amount = max(parts.items(), key=lambda part: part[1])
    return name, amount / total


def _by_kind(trace: Trace) -> dict[str, float]:
    sums: dict[str, float] = {}
    for done in trace.executed:
        if done.computes:
            sums[done.name] = sums.get(done.name, 0.0) + done.ended - done.began
    return sums

"""How much the gains over a published schedule depend on the constants of the timeline.

    python -m benchmarks.published kimi-k3

One constant at a time is another; the variants are tried anew for each.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from schedc.cost.machine import Machine
from schedc.published.demand import Demand
from schedc.published.gains import best_of, gains
from schedc.published.predict import machine_of
from schedc.published.read import load_published
from schedc.published.variants import read_variants


def machines(machine: Machine) -> Iterator[tuple[str, Machine]]:
    network = machine.network
    yield "as it is", machine
    for transfers in (1, 4):
        yield f"{transfers} transfers share the HBM", replace(machine, in_flight=transfers)
    for factor in (0.5, 1.5):
        sibling, link = factor * network.sibling_latency_ns, factor * network.link_latency_ns
        links = replace(network, sibling_latency_ns=sibling, link_latency_ns=link)
        yield f"latency of links × {factor:g}", replace(machine, network=links)
    yield "HBM × 0.9", replace(machine, bytes_per_ns=0.9 * machine.bytes_per_ns)
    for clock in (1.6, 2.2):
        yield f"clock {clock:g} GHz", replace(machine, clock_ghz=clock)
    yield "others 0.5 µs late", replace(machine, skew_ns=500.0)


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "kimi-k3"
    variants = read_variants(name)
    print(f"{'µs a step, batch 1':28}{'published':>10}{'order':>14}{'exchanges':>14}")
    for what, machine in machines(machine_of(load_published(name))):
        tried = list(gains(variants, Demand(1), machine))
        found = [best_of(tried, kind).prediction for kind in ("published", "order", "collectives")]
        steps = [prediction.step_us for prediction in found if prediction is not None]
        gained = "".join(f"{f'{step:,.0f} ({steps[0] / step:.2f}×)':>14}" for step in steps[1:])
        print(f"{what:28}{steps[0]:>10,.0f}{gained}", flush=True)


if __name__ == "__main__":
    main()

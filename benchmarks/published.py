"""How much the gains over a published schedule depend on the constants of the timeline.

    python -m benchmarks.published kimi-k3 --policy earliest_fit --set slot_mib=4 --wire bf16

One constant at a time is another; the variants are tried anew for each. Our own schedule stays the one that the options
make.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from schedc.cli.published_gains import OurOptions, our_step
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD
from schedc.published.demand import Demand
from schedc.published.gains import best_of, gains
from schedc.published.predict import machine_of
from schedc.published.read import load_published
from schedc.published.variants import read_variants
from schedc.target.target import parse_target


def machines(machine: Machine) -> Iterator[tuple[str, Machine]]:
    network = machine.network
    yield "as it is", machine
    yield "one transfer after the other", replace(machine, in_flight=1)
    links = replace(
        network, sibling_latency_ns=network.sibling_latency_ns / 2, link_latency_ns=network.link_latency_ns / 2
    )
    yield "latency of links halved", replace(machine, network=links)
    yield "clock 1.6 GHz", replace(machine, clock_ghz=1.6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--policy")
    parser.add_argument("--set", action="append", dest="settings")
    parser.add_argument("--wire")
    given = parser.parse_args()
    ours = OurOptions(given.policy, given.settings, wire=given.wire)
    variants, schedule = read_variants(given.name), load_published(given.name)
    print(f"{'µs a step, batch 1':30}{'published':>10}{'order':>15}{'exchanges':>15}{'our own':>15}")
    for what, machine in machines(Machine.of(parse_target(schedule.target, schedule.devices))):
        tried = list(gains(variants, Demand(1), machine_of(schedule, lambda _, m=machine: m)))
        found = [best_of(tried, kind).prediction for kind in ("published", "order", "collectives")]
        steps = [prediction.step_us for prediction in found if prediction is not None]
        own = our_step(schedule, Demand(1), ours, lambda _, m=machine: m, DEFAULT_LOAD).step_us
        gained = "".join(
            f"{f'{step:,.0f} ({steps[0] / step:.2f}×)':>15}" for step in (*steps[1:], *([own] if own else []))
        )
        print(f"{what:30}{steps[0]:>10,.0f}{gained}", flush=True)


if __name__ == "__main__":
    main()

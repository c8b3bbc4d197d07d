"""How many orderings a second the fast simulation tries, and whether it ranks them as the full one does.

    python -m benchmarks.explore kimi-k3 --target tpu7x:2x2x4             orderings a second of a core
    python -m benchmarks.explore kimi-k3 --target tpu7x:2x2x4 --plans 20  and Spearman's rank correlation
    … --profile kimi-k3-tpu7x                                             both by the TPU compiler's cycles

An ordering is put together and simulated whole: every loop over layers with a few trips, a period of Kimi K3 (four
layers) four times. Seconds are those of the processor.
"""

import argparse
from random import Random
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from schedc.cli.options import ScheduleOptions
from schedc.cost.machine import Machine
from schedc.cost.profile import read_profile
from schedc.explore.fast.anneal import anneal
from schedc.explore.fast.evaluate import evaluate
from schedc.explore.fast.ordering import ordering_of, step_ns
from schedc.explore.search.freedom import freedom_of
from schedc.explore.search.improve import Task, improve
from schedc.explore.search.neighbours import neighbour
from schedc.explore.setting import Setting, prepared
from schedc.explore.starts import starts
from schedc.schedule.registry import run_policy
from schedc.spec.load import load_spec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--target", default="tpu7x:2x2x1")
    parser.add_argument("--devices", type=int)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--plans", type=int, default=0)
    parser.add_argument("--profile")
    given = parser.parse_args()
    options = ScheduleOptions(target=given.target, devices=given.devices, context=given.context)
    request = options.request(load_spec(given.model))
    pricing = None if given.profile is None else read_profile(given.profile)
    setting = Setting(request.spec, request.shape, request.target, Machine.of(request.target, pricing))
    ready = prepared(setting)
    plan = run_policy("ring", ready.problem, {"slot_mib": 4.0})
    model = ready.model(plan)
    ordering = ordering_of(model, ready.problem, plan)
    trips = ", ".join(
        f"{cut} of {whole}" for cut, whole in zip(model.arrays.trips, model.arrays.whole_trips, strict=True)
    )
    print(f"{setting.spec.name} on {setting.target.name}: trips {trips} of the segments")

    arguments: list[Any] = [*model.numbers(), *ordering.all(), *model.room()]
    evaluate(*arguments)
    count, began = 2000, process_time()
    for _ in range(count):
        evaluate(*arguments)
    print(f"{count / (process_time() - began):,.0f} orderings a second and core, put together and simulated")

    freedom = freedom_of(model, ready.problem, plan)
    rows = int((ordering.slots * freedom.ring_rows).sum())
    copies: list[Any] = [array.copy() for array in ordering.all()]
    arguments = [*model.numbers(), freedom, *copies, *model.room(), 1]
    anneal(*arguments, 1, 1e-3, 1e-5, rows, 3000)
    began = process_time()
    _, simulated = anneal(*arguments, 20_000, 1e-3, 1e-5, rows, 3000)
    seconds = process_time() - began
    print(f"{20_000 / seconds:,.0f} changes a second and core tried, {simulated / seconds:,.0f} simulated")

    if given.plans:
        _correlation(setting, given.plans)


def _correlation(setting: Setting, count: int) -> None:
    ready, fast, full = prepared(setting), list[float](), list[float]()
    begin, number = list(starts(ready.problem).values()), 0
    while len(fast) < count:
        random, number = Random(number), number + 1
        plan = neighbour(ready.problem, random.choice(begin), random)
        outcome = improve(Task(setting, plan, number, random.choice((0, 30, 300))))
        if outcome.reason or ready.faults(outcome.plan):
            continue
        problem, model = ready.problem.at(outcome.plan), ready.model(outcome.plan)
        fast.append(step_ns(model, ordering_of(model, problem, outcome.plan)))
        full.append(ready.timeline(outcome.plan).step_ns)
    errors = np.abs(np.array(fast) / np.array(full) - 1.0)
    print(f"{count} random plans: Spearman {spearmanr(fast, full).statistic:.4f}, largest error {errors.max():.2%}")


if __name__ == "__main__":
    main()

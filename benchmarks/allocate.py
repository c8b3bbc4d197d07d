"""How hard packing is, and how well it ends: CPU seconds of one core, the search's machine code already compiled.

    python benchmarks/allocate.py               the challenging instances of minimalloc, and the repository's schedules
    python benchmarks/allocate.py instances     only the former: greedy, then the exact search into the capacity
    python benchmarks/allocate.py schedules     only the latter: rows that each pool takes, and its lower bound
    python benchmarks/allocate.py random        random times and sizes at their peak, by number of buffers

`peak` is the most that is live at once, in shares of the capacity for the instances; `greedy` the height of the best
greedy packing in the same unit; `nodes` the branches that the search entered.
"""

from __future__ import annotations

import csv
import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from schedc.ir.allocate import allocate, pool_problems
from schedc.ir.allocate.exact import Answer, exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Item, Problem
from schedc.ir.allocate.validate import validate
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.load import list_models, load_spec
from schedc.target.target import parse_target

DATA = Path(__file__).parents[1] / "tests" / "ir" / "data" / "minimalloc"
SECONDS = 60.0
POLICIES = ("ring", "double_buffer", "just_in_time")


def main(arguments: list[str]) -> None:
    tables: dict[str, Callable[[], None]] = {"instances": instances, "schedules": schedules, "random": random_problems}
    if any(argument not in tables for argument in arguments):
        raise SystemExit(__doc__)
    exact(Problem((Item("a", ((0, 1),), 1, 1),)), 1, SECONDS)
    for name in arguments or ("instances", "schedules"):
        tables[name]()


def instances() -> None:
    print(f"{'instance':<12}{'buffers':>8}{'peak':>8}{'greedy':>8}{'seconds':>9}{'nodes':>9}  answer")
    total = 0.0
    for path in sorted(DATA.glob("?.*.csv")):
        problem, capacity = load(path)
        answer, seconds = timed(problem, capacity)
        total += seconds
        peak, height = problem.peak()[0] / capacity, problem.height(greedy(problem)) / capacity
        line = f"{path.stem:<12}{len(problem.items):>8}{peak:>8.3f}{height:>8.3f}{seconds:>9.2f}{answer.nodes:>9}"
        print(f"{line}  {answer.kind}", flush=True)
    print(f"{'total':<36}{total:>9.2f}\n")


def schedules() -> None:
    target = parse_target("tpu7x")
    print(f"{'model':<16}{'policy':<15}{'rows':>5}  pool rows taken / peak")
    for model in list_models():
        for policy in POLICIES:
            for rows in (1, 8, 16):
                program = schedule(load_spec(model), StepShape(rows, 4096), target, policy).program
                taken = {pool.name: pool.rows for pool in allocate(program, capacity_rows(target)).pools}
                pools = (f"{pool} {taken[pool]} / {p.floor()}" for pool, p in pool_problems(program).items())
                print(f"{model:<16}{policy:<15}{rows:>5}  {', '.join(pools)}", flush=True)
    print()


def random_problems() -> None:
    """Lanes of buffers one after the other, so that every time is full and a packing without a gap exists."""
    print(f"{'buffers':>8}{'solved':>8}{'seconds':>9}{'nodes':>10}   of ten, and of the median one")
    for lanes in (4, 6, 8, 10, 12, 16):
        buffers = sum(len(problem.items) for problem, _ in packed(lanes, 10)) // 10
        timings = (timed(problem, height, 10.0) for problem, height in packed(lanes, 10))
        results = sorted(((spent, answer) for answer, spent in timings), key=lambda result: result[0])
        seconds, answer = results[len(results) // 2]
        solved = sum(found.kind == "fits" for _, found in results)
        print(f"{buffers:>8}{solved:>8}{seconds:>9.2f}{answer.nodes:>10}", flush=True)
    print()


def packed(lanes: int, count: int) -> Iterator[tuple[Problem, int]]:
    """Problems made from a packing: at each time some neighbouring lanes end together and are cut anew."""
    for seed in range(count):
        rng = random.Random(seed)
        height = lanes * 20
        cuts = sorted({0, height, *rng.sample(range(1, height), lanes - 1)})
        open_at = dict.fromkeys(pairwise(cuts), 0)
        items: list[Item] = []
        for now in range(1, lanes * 6):
            lows = sorted(open_at)
            first = rng.randrange(len(lows))
            ended = lows[first : first + rng.randint(1, 3)]
            low, high = ended[0][0], ended[-1][1]
            for lane in ended:
                items.append(Item(f"b{len(items)}", ((open_at.pop(lane), now),), lane[1] - lane[0], 1))
            inside = rng.sample(range(low + 1, high), min(rng.randint(0, 2), high - low - 1))
            edges = sorted({low, high, *inside})
            open_at |= dict.fromkeys(pairwise(edges), now)
        items += [Item(f"b{len(items)}.{a}", ((since, lanes * 6),), b - a, 1) for (a, b), since in open_at.items()]
        yield Problem(tuple(items)), height


def load(path: Path) -> tuple[Problem, int]:
    with path.open() as file:
        items = tuple(
            Item(row["id"], ((int(row["lower"]), int(row["upper"])),), int(row["size"]), 1)
            for row in csv.DictReader(file)
        )
    return Problem(items), int(path.stem.split(".")[1])


def timed(problem: Problem, height: int, seconds: float = SECONDS) -> tuple[Answer, float]:
    start = time.process_time()
    answer = exact(problem, height, seconds, time.process_time)
    spent = time.process_time() - start
    if answer.kind == "fits" and validate(problem, answer.addresses, height):
        raise AssertionError("the packing is not valid")
    return answer, spent


if __name__ == "__main__":
    main(sys.argv[1:])

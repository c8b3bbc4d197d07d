"""The best of many thousand plans that a search tries: orders, issue points, rings, tiles; minutes on two cores.

Beam search over what decides the step graph (tiles, sums, rings), simulated annealing over the orderings of each graph,
the full simulation between the finalists: schedc/explore/search. The same seed and rounds give the same plan. `seconds`
ends it early. `schedc explore` does the same with a progress bar and keeps the plan in a file.
"""

from __future__ import annotations

from math import inf

from schedc.schedule.plan import Plan, Problem


def search(
    problem: Problem, *, seed: int = 0, rounds: int = 10, steps: int = 20_000, seconds: float = 0.0, jobs: int = 1
) -> Plan:
    """`rounds` of eight tasks of `steps` changes each, in `jobs` processes, or at most `seconds` (0: no limit)."""
    from schedc.explore.executors import executor
    from schedc.explore.search.population import Effort
    from schedc.explore.search.population import search as searched
    from schedc.explore.setting import setting_of
    from schedc.explore.starts import starts

    if rounds < 0 or steps < 0 or jobs < 1:
        raise ValueError(f"rounds {rounds}, steps {steps} and jobs {jobs} must be positive")
    setting = setting_of(problem)
    effort = Effort(rounds, steps, seconds or inf, seed)
    with executor("local", jobs) as run:
        return searched([setting], [(0, plan) for plan in starts(problem).values()], effort, run).plan

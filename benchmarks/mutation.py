"""How the proof judges programs with one fault in them, against what an executor with random timing shows.

    python benchmarks/mutation.py --mutants 2000 --seed 1
    python benchmarks/mutation.py --program exchange --kind drop-wait --mutants 100

A table a program, a line for every kind of fault: how many mutants, how many of them the executor shows unsafe and of
those how many the proof accepts (none, or the exit code is 1); how many seem safe, and of those how many the proof
refuses by a rule that is not of timing (such as alignment), and how many without such a reason. Every disagreement is
printed at the end as a difference to the program, with the reasons.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from tests.ir.mutation.campaign import Campaign, Count, campaign
from tests.ir.mutation.differences import difference
from tests.ir.mutation.judge import MANY_RUNS
from tests.ir.mutation.programs import LONG, PROGRAMS, program
from tests.ir.mutation.registry import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=200, help="how many of every program (default 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", action="append", choices=(*PROGRAMS, *LONG), help="one or more of the programs")
    parser.add_argument("--kind", action="append", choices=KINDS, help="one or more kinds of faults; default all")
    parser.add_argument(
        "--runs", type=int, default=MANY_RUNS, help=f"of a mutant that seems safe (default {MANY_RUNS})"
    )
    options = parser.parse_args()
    total, found = Count(), []
    for name in options.program or PROGRAMS:
        done = judged(name, options)
        print_table(name, done)
        total += done.total
        found += [(name, *pair) for pair in done.false]
    print(line("all programs", total))
    for name, mutant, judgement in found:
        verdict = "UNSAFE, BUT ACCEPTED" if judgement.falsely_accepted else "safe, but refused"
        print(f"\n{name}, {mutant.kind}: {verdict}")
        print("\n".join(difference(program(name), mutant.program)))
        print("\n".join(f"  => {reason}" for reason in (judgement.fault, *judgement.refusals[:3]) if reason))
    return 1 if total.falsely_accepted else 0


def judged(name: str, options: argparse.Namespace) -> Campaign:
    began = time.monotonic()

    def tell(number: int) -> None:
        if number % 20 == 0:
            print(f"\r{name}: {number} mutants, {time.monotonic() - began:.0f} s", end="", file=sys.stderr, flush=True)

    on_each = tell if sys.stderr.isatty() else id
    done = campaign(program(name), options.mutants, options.seed, options.runs, options.kind or KINDS, on_each)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return done


def print_table(name: str, done: Campaign) -> None:
    print(f"{name:44}{'mutants':>8}{'unsafe':>8}{'accepted':>10}{'safe':>8}{'by rule':>9}{'refused':>9}{'share':>8}")
    for kind in sorted(done.counts):
        print(line(f"  {kind}", done.counts[kind]))
    print(line("  all kinds", done.total), "\n", flush=True)


def line(title: str, count: Count) -> str:
    share = f"{100 * count.refused_share:.1f} %" if count.safe else ""
    counts = f"{count.mutants:8}{count.unsafe:8}{count.falsely_accepted:10}{count.safe:8}"
    counts += f"{count.refused_by_rule:9}{count.falsely_refused:9}"
    return f"{title:44}{counts}{share:>8}"


if __name__ == "__main__":
    sys.exit(main())

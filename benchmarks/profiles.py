"""Make the shipped tables of the TPU compiler's cycles by operation, schedc/cost/profiles/*.yaml.

    python -m benchmarks.profiles kimi-k3-tpu7x      compile the programs below and merge their profiles (some minutes)

With such a table a prediction is charged with the compiler's cycles where there is no compiler, or no time for it:
`schedc compile kimi-k3 --no-check --profile kimi-k3-tpu7x`.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field

from schedc.compiler.pipeline import Request, build
from schedc.compiler.profile import compile_profile
from schedc.cost.profile import SHIPPED, merged
from schedc.errors import SchedcError
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import RowsAre, StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from schedc.weights.layout import WordDtype


@dataclass(frozen=True)
class Case:
    """One program of a table; what is tiled, exchanged or cached in another way has operations of its own."""

    model: str
    target: str
    devices: int
    rows: int = 1
    rows_are: RowsAre = "sequences"
    wire: WordDtype = "f32"
    settings: dict[str, int | float] = field(default_factory=lambda: {"slot_mib": 4})
    context: int = 4096

    def request(self) -> Request:
        spec, target = load_spec(self.model), parse_target(self.target, self.devices)
        talk = communication_for(spec.hidden, self.rows, target, wire=self.wire)
        shape = StepShape(self.rows, self.context, devices=self.devices, communication=talk, rows_are=self.rows_are)
        return Request(spec, target, shape, settings=self.settings)


K3 = ("kimi-k3", "tpu7x:2x2x4", 32)
TABLES: dict[str, tuple[Case, ...]] = {
    "kimi-k3-tpu7x": (
        Case(*K3),
        Case(*K3, settings={"slot_mib": 2}),
        Case(*K3, wire="bf16"),
        Case(*K3, rows=4),
        Case(*K3, rows=8, settings={"slot_mib": 4, "depth": 6}),
        Case(*K3, rows=8, rows_are="tokens"),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=sorted(TABLES))
    arguments = parser.parse_args()
    profiles = []
    for case in TABLES[arguments.table]:
        began = time.perf_counter()
        try:
            request = case.request()
            profiles.append(compile_profile(build(request)[1], request.target, timeout=1800))
        except SchedcError as error:
            print(f"{case}: left out: {error}", file=sys.stderr)
            continue
        print(f"{case}: {len(profiles[-1].spreads)} signatures, {time.perf_counter() - began:.0f} s", flush=True)
    SHIPPED.mkdir(exist_ok=True)
    table = merged(profiles, arguments.table)
    table.write(SHIPPED / f"{arguments.table}.yaml")
    print(f"{len(table.spreads)} signatures of {len(profiles)} programs")
    return 0 if len(profiles) == len(TABLES[arguments.table]) else 1


if __name__ == "__main__":
    raise SystemExit(main())

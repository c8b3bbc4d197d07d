"""From a Hugging Face config.json to a proven kernel, in Python: which policy is predicted to be the fastest?

    python examples/compile_from_config.py path/to/config.json

The same on the command line: `schedc import config.json -o model.yaml && schedc compile ./model.yaml`.
"""

import sys
from pathlib import Path

from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import StepShape
from schedc.schedule.registry import POLICIES
from schedc.spec.importers.import_config import import_config
from schedc.target.target import parse_target


def main(config: str) -> None:
    spec = import_config(Path(config))
    shape = StepShape(rows=4, context=min(4096, spec.max_position))
    results = [compile_model(Request(spec, parse_target("tpu7x"), shape, policy)) for policy in POLICIES]
    for compiled in sorted(results, key=lambda compiled: compiled.cost.step_us):
        print(f"{compiled.request.policy:>14}: {compiled.cost.step_us:,.1f} µs a step")
    best = min(results, key=lambda compiled: compiled.cost.step_us)
    Path("kernel.py").write_text(best.kernel.source)
    print(f"wrote kernel.py with policy {best.request.policy}")


if __name__ == "__main__":
    main(sys.argv[1])

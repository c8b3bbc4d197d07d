"""From a Hugging Face config.json to a proven kernel, in Python: which policy is predicted to be the fastest?

    python examples/compile_from_config.py path/to/config.json

The same on the command line: `schedc import config.json -o model.yaml && schedc compile ./model.yaml`.
"""

import sys
from pathlib import Path

import schedc
from schedc.schedule.registry import POLICIES


def main(config: str) -> None:
    spec = schedc.read_spec(Path(config))
    made = [schedc.predict(spec, "tpu7x", rows=4, policy=policy) for policy in POLICIES]
    made.sort(key=lambda prediction: prediction.report.step_us)
    for prediction in made:
        print(f"{prediction.request.policy:>20}: {prediction.report.step_us:,.1f} µs a step")
    best = schedc.compile(spec, "tpu7x", rows=4, policy=made[0].request.policy)
    Path("kernel.py").write_text(best.source)
    print(f"wrote kernel.py with policy {best.request.policy}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} path/to/config.json")
    main(sys.argv[1])

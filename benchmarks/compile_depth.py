"""Compile time against depth: SmolLM2 with 30 and with 300 layers, in turns.

python benchmarks/compile_depth.py [turns]
"""

import statistics
import sys
import tempfile
from pathlib import Path

from schedc.compiler.check import check
from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target


def seconds(layers: int) -> float:
    """Lowering and compiling by the TPU compiler."""
    spec = load_spec("smollm2-135m").model_dump(mode="json")
    spec["layers"][0]["repeat"] = layers
    request = Request(ModelSpec.model_validate(spec), parse_target("tpu7x:2x2x1"), StepShape(1, 4096))
    compiled = compile_model(request)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(compiled.kernel.source)
        report = check(compiled, path)
    return report.lower_seconds + report.compile_seconds


def main() -> None:
    turns = int(sys.argv[1]) if sys.argv[1:] else 5
    times: dict[int, list[float]] = {30: [], 300: []}
    for _ in range(turns):
        for layers in times:
            times[layers].append(seconds(layers))
    medians = {layers: statistics.median(taken) for layers, taken in times.items()}
    for layers, median in medians.items():
        print(f"{layers:4} layers: median {median:.2f} s of {turns}")
    print(f"ratio {medians[300] / medians[30]:.3f}")


if __name__ == "__main__":
    main()

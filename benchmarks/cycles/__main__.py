"""Print the issue cycles of a step by phase, beside those of the kernel of the same model that others wrote by hand.

    python -m benchmarks.cycles kimi-k3 --devices 32                 one row at a short context, for tpu7x:2x2x4
    python -m benchmarks.cycles kimi-k3 --plan kimi-k3               of a plan
    python -m benchmarks.cycles deepseek-v3 --target tpu7x:2x2x1 --devices 8 --rows 8 --position 4000 --json

Cycles are bundles of the TPU compiler's schedule, stalls included, every loop at its trips: the layers, the tiles of
weights, the tiles of the cache up to `--position`, and of chosen experts as many as evenly choosing rows would give a
device. The program is not proven here; `schedc compile` does that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cycles.handwritten import Handwritten, handwritten
from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.emit.kernel import emit
from schedc.cli.options import ScheduleOptions
from schedc.compiler.pipeline import Request, build
from schedc.compiler.step_cycles import step_cycles
from schedc.cost.inputs import default_inputs
from schedc.cost.operations import CycleTable
from schedc.cost.routing import Load
from schedc.errors import SchedcError
from schedc.ir.program import Program
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import StepShape
from schedc.placement.load import load_rules
from schedc.placement.rules import PlacementRules
from schedc.spec.load import load_spec
from schedc.target.target import Target, parse_target


def measured(request: Request, position: int, timeout: float) -> tuple[Program, dict[str, int]]:
    """The program, and its cycles by phase."""
    _, program = build(request)
    kernel = emit(program)
    with tempfile.TemporaryDirectory(prefix="schedc-cycles-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(kernel.source, encoding="utf-8")
        made = compile_kernel(path, request.target.topology_name, request.shape.devices, timeout=timeout)
    inputs = default_inputs(program, position, Load(experts="mean"))
    return program, step_cycles(program, kernel, made, CycleTable.on(request.target), inputs)


def table(cycles: dict[str, int], theirs: Handwritten | None) -> str:
    """Phases with cycles, then what the two kernels do alike."""
    lines = [f"{name:<44}{amount:>12,}" for name, amount in cycles.items() if amount]
    lines.append(f"{'step':<44}{sum(cycles.values()):>12,}")
    if theirs is not None:
        lines += ["", f"{'beside ' + theirs.source}", f"{'a step, in all its layers':<44}{'ours':>12}{'theirs':>12}"]
        lines += [f"{name:<44}{own:>12,}{their:>12,}" for name, own, their in theirs.compared(cycles)]
    return "\n".join(lines)


def requested(arguments: argparse.Namespace) -> Request:
    spec = load_spec(arguments.model)
    target: Target = parse_target(arguments.target, arguments.devices)
    rules = load_rules(arguments.placement) if arguments.placement else PlacementRules()
    talk = communication_for(spec.hidden, arguments.rows, target)
    shape = StepShape(arguments.rows, arguments.context, devices=arguments.devices, placement=rules, communication=talk)
    settings: dict[str, Any] = {}
    for setting in arguments.set:
        name, _, value = setting.partition("=")
        settings[name] = float(value) if "." in value else int(value)
    return Request(spec, target, shape, settings=settings)


def of_plan(model: str, plan: str) -> Request:
    """As `schedc compile MODEL --plan PLAN` compiles it."""
    return ScheduleOptions(plan=plan).request(load_spec(model))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a name from `schedc models`, or a spec file")
    parser.add_argument("--target", default="tpu7x:2x2x4")
    parser.add_argument("--devices", type=int, default=32)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--context", type=int, default=2048, help="tokens the caches have room for")
    parser.add_argument("--position", type=int, default=150, help="of all rows")
    parser.add_argument("--placement", type=Path, help="YAML with rules of the placement")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of the policy")
    parser.add_argument("--plan", help="a plan, which says all of the step that the options above do")
    parser.add_argument("--timeout", type=float, default=600, help="seconds the TPU compiler may take")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    said = ("target", "devices", "rows", "context", "placement", "set")
    given = [f"--{name}" for name in said if getattr(arguments, name) != parser.get_default(name)]
    if arguments.plan is not None and given:
        parser.error(f"--plan says all of the step; leave {', '.join(given)} out")
    try:
        request = requested(arguments) if arguments.plan is None else of_plan(arguments.model, arguments.plan)
        _, cycles = measured(request, arguments.position, arguments.timeout)
    except SchedcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    theirs = handwritten(Path(arguments.model).stem)
    if arguments.json:
        compared = [] if theirs is None else theirs.compared(cycles)
        beside = {name: {"ours": own, "theirs": their} for name, own, their in compared}
        print(json.dumps({"phases": cycles, "step": sum(cycles.values()), "beside": beside}, indent=2))
    else:
        print(table(cycles, theirs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

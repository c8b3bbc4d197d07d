"""The compiler's cycles attributed to operations: all of them, once."""

from collections import Counter
from dataclasses import replace

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.report import CompileReport
from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.copies import traced_operations
from schedc.compiler.pipeline import Request, build
from schedc.compiler.profile import profile_kernel
from schedc.cost.executions import executions
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.ir.program import Compute, Program, walk
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

TARGET = parse_target("tpu7x")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, Kernel, CompileReport]:
    _, program = build(Request(load_spec("smollm2-135m"), TARGET, StepShape(1, 512)))
    kernel = emit(program)
    path = tmp_path_factory.mktemp("profile") / "kernel.py"
    path.write_text(kernel.source)
    return program, kernel, compile_kernel(path, TARGET.topology_name, 1)


def test_the_bundles_of_a_kernel_are_those_of_its_operations_and_copies(
    compiled: tuple[Program, Kernel, CompileReport],
) -> None:
    program, kernel, made = compiled
    assert made.cycles is not None
    profile = profile_kernel(program, kernel, made, TARGET)
    copies = Counter(number for number, _ in traced_operations(program))
    assert sum(c * copies[n] for n, c in enumerate(profile.cycles)) == pytest.approx(made.cycles.total, abs=1)
    dearest = max(enumerate(walk(program.body)), key=lambda pair: profile.cycles[pair[0]])[1]
    assert isinstance(dearest, Compute)
    assert (dearest.kind, profile.chip, len(profile.program_sha256 or "")) == ("attend", "tpu7x", 64)


def test_a_step_is_charged_with_every_bundle_as_often_as_it_is_executed(
    compiled: tuple[Program, Kernel, CompileReport],
) -> None:
    program, kernel, made = compiled
    profile = profile_kernel(program, kernel, made, TARGET)
    priced = replace(Machine.of(TARGET), pricing=profile)
    timeline = simulate(program, priced, {"position": [100]})
    times = executions(program, {"position": [100]})
    assert timeline.cycles == pytest.approx(sum(c * n for c, n in zip(profile.cycles, times, strict=True)), rel=0.01)
    assert sum(profile.phases.values()) == pytest.approx(simulate(program, priced).cycles, rel=0.01)
    assert profile.phases["up"] == max(profile.phases.values())

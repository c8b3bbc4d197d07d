"""The kernel with its margins: every operation on its line, figures that add up to the prediction."""

from collections import Counter
from pathlib import Path

import pytest

from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.output import read_output, write_program
from schedc.compiler.pipeline import Request, compile_model
from schedc.cost.profile import profile_of
from schedc.cost.report import predict
from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.inspect.margin import margin
from schedc.inspect.subject import Subject, of_folder, of_request
from schedc.ir.program import Compute, Phase, walk
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

REQUEST = Request(load_spec("smollm2-135m"), parse_target("tpu7x"), StepShape(1, 4096))


@pytest.fixture(scope="module")
def smol() -> Subject:
    return of_request(REQUEST)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_program(compile_model(REQUEST), tmp_path)
    return tmp_path


def test_the_source_is_whole_and_every_operation_has_its_figures(smol: Subject):
    made, kernel = margin(smol), emit(smol.program)
    assert "\n".join(line.text for line in made.lines) + "\n" == kernel.source
    lines = {line.number: line for line in made.lines}
    counts = Counter(event.op for event in simulate(smol.program, smol.machine, events=True).events)
    for number, (at, op) in enumerate(kernel.operations):
        if isinstance(op, Compute):
            assert f"{op.kind}(" in lines[at].text and lines[at].times == counts[number]
            expected = lines[at].cycles * counts[number] / smol.machine.clock_ghz / 1e3
            assert lines[at].cycles > 0 and lines[at].time_us == pytest.approx(expected, abs=0.001)
        elif isinstance(op, Phase):
            assert lines[at].heading and lines[at].text.strip() == f"# {op.name}" and lines[at].phase == op.name
    assert all(not line.phase and line.cycles is None for line in made.lines if line.number < kernel.operations[0][0])


def test_headings_add_up_to_the_step_and_lines_to_their_headings(smol: Subject):
    made, cost = margin(smol), predict(smol.program, smol.target)
    headings = [line for line in made.lines if line.heading]
    assert sum(line.time_us for line in headings) == pytest.approx(cost.step_us, abs=0.2)
    assert sum(line.stall_us for line in headings) == pytest.approx(cost.stall_us, abs=0.05)
    for heading in headings:
        inside = [line for line in made.lines if line.phase == heading.phase and not line.heading and line.time_us]
        guards = heading.time_us - sum(line.time_us for line in inside)
        assert -0.01 <= guards <= max(0.2, 0.02 * heading.time_us), "what is missing are loops and guards"


def test_a_phase_by_itself(smol: Subject):
    made = margin(smol).of_phase("attend")
    assert {line.phase for line in made.lines} == {"attend"} and made.lines[0].heading
    assert any("attend(" in line.text for line in made.lines)
    with pytest.raises(UserError, match="there is no phase 'attent'; there are prologue, fetch, embed"):
        margin(smol).of_phase("attent")


def test_a_folder_with_a_profile_shows_the_compilers_cycles(folder: Path):
    assert margin(of_folder(read_output(folder))).priced_by == "the table of operations"
    program = of_folder(read_output(folder)).program
    cycles = [1000.0 + number if isinstance(op, Compute) else 1.0 for number, op in enumerate(walk(program.body))]
    versions = {"jax": "1", "jaxlib": "1", "libtpu": "2"}
    profile_of(program, "tpu7x", versions, cycles, "").write(folder / "profile.json")
    subject = of_folder(read_output(folder))
    made = margin(subject)
    assert made.priced_by == "the compiler's cycles (jax 1, libtpu 2)"
    lines = {line.number: line for line in made.lines}
    for number, (at, op) in enumerate(emit(program).operations):
        if isinstance(op, Compute):
            assert lines[at].cycles == cycles[number]
    assert made.step_us == pytest.approx(predict(program, subject.target, machine=subject.priced).step_us)


def test_a_kernel_that_was_changed_is_refused(folder: Path):
    path = folder / "kernel.py"
    path.write_text(path.read_text() + "# mine\n")
    with pytest.raises(UserError, match="is not the kernel of"):
        margin(of_folder(read_output(folder)))

"""The emitted file: it follows the program, line by line, and nothing else."""

import ast
import re
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.load import load_kernel
from schedc.backends.pallas.emit.kernel import emit
from schedc.backends.pallas.errors import EmitError
from schedc.compiler.pipeline import Request, build
from schedc.ir.program import Compute, Loop, Phase, Program, SetScalar, Start, Wait, When, walk
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_program
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.one_device import models_on_one_device
from tests.reference.small_specs import FEATURES, small_spec

GOLDEN = Path(__file__).parent / "golden" / "small_kernel.py.golden"
TARGET = parse_target("tpu7x")
POLICIES = ("ring", "double_buffer", "just_in_time")


def program_of(spec: ModelSpec, policy: str = "ring", rows: int = 2, context: int = 48, **settings: float) -> Program:
    return build(Request(spec, TARGET, StepShape(rows, context), policy, settings))[1]


def small_program() -> Program:
    """Two layers with a window and biases, tiles small enough for every loop to be there."""
    mixer = {"kv_heads": 1, "window": 20, "bias": {"q": True, "k": True, "v": True}}
    spec = small_spec(mixer, {"width": 300}, vocab=300)
    return program_of(spec, depth=3, slot_mib=0.01)


def test_the_golden_kernel(request: pytest.FixtureRequest) -> None:
    source = emit(small_program()).source
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(source)
    assert source == GOLDEN.read_text(), "the emitted kernel has changed; if it should have: pytest --update-golden"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["plain", "two runs", "window", "sandwich norm"])
def test_the_text_of_a_program_emits_the_same_bytes(name: str, policy: str) -> None:
    program = program_of(FEATURES[name], policy)
    assert emit(parse_program(print_program(program))).source == emit(program).source


@pytest.mark.parametrize("model", models_on_one_device())
def test_the_text_of_a_full_size_program_emits_the_same_bytes(model: str) -> None:
    program = program_of(load_spec(model), rows=1, context=4096)
    assert emit(parse_program(print_program(program))).source == emit(program).source


STARTS = {
    Start: r"copy\(.*\)\.start\(\)",
    Wait: r"wait\(.*\)",
    SetScalar: r"\w+\[.*\] = .*",
    Loop: r"@pl\.loop\(0, .*\)|for \w+ in range\(.*\):",
    When: r"@pl\.when\(.*\)",
    Phase: r"# \w+",
    Compute: r"\w+\(.*",
}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_operation_is_on_the_line_that_the_emitter_says(policy: str) -> None:
    program = program_of(FEATURES["two runs"], policy, rows=3)
    kernel = emit(program)
    lines = kernel.source.splitlines()
    assert [op for _, op in kernel.operations] == list(walk(program.body))
    for line, op in kernel.operations:
        assert re.fullmatch(STARTS[type(op)], lines[line - 1].strip()), (lines[line - 1], op)


def test_the_transfers_of_the_file_are_those_of_the_program_in_its_order() -> None:
    program = small_program()
    kernel = emit(program)
    started = re.findall(r"copy\((\w+).*?, (\w+)(?:\(|\.|,).*, (\w+)\.at\[.*\]\)\.start\(\)", kernel.source)
    transfers = [op for op in walk(program.body) if isinstance(op, Start)]
    assert started == [(op.source.storage, op.target.storage, op.semaphore.name) for op in transfers]
    waited = re.findall(r"wait\((\w+)\.at\[.*\], \w+, (\d+)\)", kernel.source)
    waits = [op for op in walk(program.body) if isinstance(op, Wait)]
    assert waited == [(op.semaphore.name, str(op.rows)) for op in waits]


def test_the_file_imports_nothing_but_jax() -> None:
    tree = ast.parse(emit(small_program()).source)
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {module.split(".")[0] for module in modules if module} == {"jax"}


def test_the_length_of_the_file_does_not_depend_on_the_number_of_layers() -> None:
    lengths = set()
    for repeat in (3, 30, 300):
        layers = small_spec().model_dump(mode="json")["layers"]
        source = emit(program_of(small_spec(layers=[layers[0] | {"repeat": repeat}]))).source
        lengths.add(source.count("\n"))
    assert len(lengths) == 1


@pytest.mark.kernel
def test_the_interface_is_what_the_program_declares(tmp_path: Path) -> None:
    program = small_program()
    path = tmp_path / "kernel.py"
    path.write_text(emit(program).source)
    kernel = load_kernel(path)
    assert list(kernel.ARGUMENTS)[:3] == ["token", "position", "active"]
    assert kernel.STATE == ("kv",)
    assert kernel.OUTPUTS == ("kv", "ids")
    for array in program.arrays:
        if array.role != "output":
            assert kernel.ARGUMENTS[array.name] == ("int32", (array.rows, 128))


EMPTY = """\
program p {
  pool work rows=8
  buffer tile in work rows=8 slots=1 align=8 at 0
  hbm weights rows=8 weight
  semaphore arrived[1] dma
  loop l < 3 {
    phase nothing {
    }
  }
  start weights[0 +: 8] -> tile[0 +: 8] signals arrived
  when 1 < 2 {
  }
  wait arrived rows=8
}
"""


def test_a_body_without_operations_is_a_statement_too() -> None:
    source = emit(parse_program(EMPTY)).source
    assert source.count("        pass\n") == 2
    compile(source, "kernel.py", "exec")


def changed(program: str, old: str, new: str) -> Program:
    assert old in program
    return parse_program(program.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" at 0", "", "tile: has no address yet; allocate first"),
        ("weights", "copy", "copy: already the name of an operation or of other storage"),
        ("weights", "lambda", "lambda: not a Python name"),
        ("  wait", "  compute guess(x: read tile[0 +: 8])\n  wait", "no operation is called guess; there are "),
    ],
)
def test_what_cannot_be_emitted_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(EmitError, match=re.escape(message)):
        emit(changed(EMPTY, old, new))

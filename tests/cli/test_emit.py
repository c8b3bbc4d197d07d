"""`schedc emit`: the kernel of a program written by hand, and of nothing that is not proven."""

from pathlib import Path

import pytest

from .conftest import Command, refused
from .test_check import EXAMPLE, written

UNPROVEN = EXAMPLE.replace("    wait arrived[t % 2] rows=8\n", "")


def test_the_kernel_stands_beside_the_program(schedc: Command) -> None:
    written(EXAMPLE, "sum.ir")
    said = schedc("emit", "sum.ir")
    assert (said.code, said.err) == (0, "")
    source = Path("sum.py").read_text()
    lines = source.count("\n")
    assert said.out == (
        f"wrote sum.py: {lines} lines, proven safe on tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 1 device used\n"
    )
    assert source.startswith('"""double_buffer: ') and "vmem_limit_bytes=67043328" in source
    assert sorted(path.name for path in Path().iterdir()) == ["sum.ir", "sum.py"]


def test_the_kernel_goes_where_it_is_asked_to(schedc: Command) -> None:
    written(EXAMPLE, "sum.ir")
    assert schedc("emit", "sum.ir", "-o", "kernel.py").out.startswith("wrote kernel.py: ")
    source = Path("kernel.py").read_text()
    assert schedc("emit", "sum.ir", "-o", "-").out == source
    assert schedc("emit", "-", stdin=EXAMPLE).out == source
    found = schedc("emit", "sum.ir", "-o", "-", "--json").json()
    assert (found["kernel"], found["source"], found["proven"]) == (None, source, True)
    found = schedc("emit", "sum.ir", "-o", "other.py", "--json").json()
    assert (found["kernel"], found["proven"], "source" in found) == ("other.py", True, False)


def test_the_program_of_a_compilation_emits_its_kernel_to_the_byte(schedc: Command) -> None:
    schedc("compile", "smollm2-135m", "--no-check", "--context", "64", "-o", "k")
    assert schedc("emit", "k/program.ir", "-o", "-").out == Path("k/kernel.py").read_text()


def test_what_is_not_proven_is_not_emitted(schedc: Command) -> None:
    message = refused(schedc("emit", written(UNPROVEN)), code=1)
    assert message.startswith("p.ir is refused: ") and "p.ir:22:5: read-while-arriving: " in message
    assert not Path("p.py").exists()


def test_without_the_proof_the_kernel_says_so(schedc: Command) -> None:
    said = schedc("emit", written(UNPROVEN), "--no-verify")
    assert (said.code, said.err) == (0, "warning: p.ir is not proven (--no-verify)\n")
    assert "NOT PROVEN" in said.out
    assert "proof not asked (--no-verify)" in Path("p.py").read_text().partition('"""\n')[0]
    assert schedc("emit", "p.ir", "--no-verify", "--json").json()["proven"] is None


def test_a_file_that_is_not_a_kernel_is_not_overwritten_unasked(schedc: Command) -> None:
    written(EXAMPLE)
    Path("p.py").write_text("import precious\n")
    assert refused(schedc("emit", "p.ir")) == (
        "p.py: is not overwritten, because schedc did not write it; give a file with -o"
    )
    assert Path("p.py").read_text() == "import precious\n"
    assert schedc("emit", "p.ir", "-o", "p.py").code == 0
    assert schedc("emit", "p.ir").code == 0


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (("compute zero(", "compute zorro("), "zorro"),
        (("x: update total", "z: update total"), "z"),
        (("buffer total", 'buffer "to tal"'), "to tal: not a Python name"),
    ],
)
def test_what_the_kernel_cannot_say_is_bad_input(schedc: Command, change: tuple[str, str], part: str) -> None:
    text = EXAMPLE.replace(*change)
    if "to tal" in part:
        text = text.replace("total[", '"to tal"[')
    message = refused(schedc("emit", written(text)))
    assert message.startswith("p.ir: ") and part in message
    assert not Path("p.py").exists()


def test_more_unrolled_loops_than_python_nests_are_refused(schedc: Command) -> None:
    loops = "\n".join(f"loop l{i} < 1 unroll {{" for i in range(40)) + "\nset y[0] = 1\n" + "}\n" * 40
    program = written(f"program p {{\n  smem y[1] in 0..1 local\n{loops}}}\n")
    assert "too many statically nested blocks" in refused(schedc("emit", program))


@pytest.mark.kernel
def test_the_kernel_of_the_example_adds_its_tiles(schedc: Command) -> None:
    import jax
    import numpy as np

    from schedc.backends.pallas.compat import interpret_params
    from schedc.run.generate import load_kernel_source

    kernel = load_kernel_source(schedc("emit", written(EXAMPLE), "-o", "-").out, "kernel")
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("device",))
    step = kernel.decode_step(mesh, interpret=interpret_params("on_wait", detect_races=True))
    tiles = np.random.default_rng(0).standard_normal((10, 8, 128)).astype(np.float32)
    (total,) = step(tiles.reshape(80, 128).view(np.int32))
    np.testing.assert_allclose(np.asarray(total).view(np.float32), tiles.sum(axis=0), rtol=1e-5, atol=1e-5)


@pytest.mark.kernel
def test_the_tpu_compiler_agrees_with_the_kernel_of_the_example(schedc: Command) -> None:
    said = schedc("emit", written(EXAMPLE), "--check", "--json")
    assert said.code == 0, said.err
    compiler = said.json()["compiler"]
    assert compiler["problems"] == [] and compiler["transfers"] == 3
    assert compiler["vmem_bytes"]["scratch"] == said.json()["vmem"]["peak_bytes"]


def test_a_kernel_that_the_tpu_compiler_refuses_is_not_written(
    schedc: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from schedc.compiler import check
    from schedc.errors import CheckFailed

    def refuse(*arguments: object) -> None:
        raise CheckFailed("the TPU compiler refuses the kernel (compile): no")

    monkeypatch.setattr(check, "check_kernel", refuse)
    message = refused(schedc("emit", written(EXAMPLE), "--check"), code=1)
    assert message == "the TPU compiler refuses the kernel (compile): no"
    assert not Path("p.py").exists()

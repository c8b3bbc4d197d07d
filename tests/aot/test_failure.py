"""A kernel that does not compile: one line that says why, and the line of the kernel that is to blame."""

from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.failure import CompileFailed, reason_of
from schedc.errors import CheckFailed

from .conftest import TOPOLOGY, Variant, line_with

pytestmark = pytest.mark.kernel


def refusal(kernel: Path, **options: float) -> CompileFailed:
    with pytest.raises(CompileFailed) as caught:
        compile_kernel(kernel, TOPOLOGY, dump=False, **options)  # type: ignore[arg-type]
    return caught.value


def test_scratch_beyond_the_kernels_limit(variant: Variant) -> None:
    kernel = variant(("pltpu.VMEM((2 * WEIGHT, 128)", "pltpu.VMEM((80000, 128)"))
    error = refusal(kernel)
    assert str(error) == (
        f"{kernel}: compile failed: VMEM exhausted: 39.09M allocated, the kernel's limit is 16.00M: 23.09M too much"
    )
    assert isinstance(error, CheckFailed) and error.failure.lines == ()


def test_a_buffer_beyond_the_chips_vmem(variant: Variant) -> None:
    error = refusal(variant(("pltpu.VMEM((2 * WEIGHT, 128)", "pltpu.VMEM((160000, 128)")))
    assert error.failure.reason == (
        "VMEM exhausted: s32[160000,128] takes 81,920,000 bytes of 67,108,864: 14,811,136 too many"
    )


def test_a_load_that_is_not_aligned_to_lanes(variant: Variant) -> None:
    row = "y[...] += tiles[pl.ds(slot * TILE, 8)].astype(jnp.float32)"
    kernel = variant((row, "y[:, 0:64] += tiles[0:8, pl.ds(position[0], 64)].astype(jnp.float32)  # here"))
    failure = refusal(kernel).failure
    assert (failure.stage, failure.line) == ("compile", line_with(kernel, "# here"))
    assert "cannot statically prove that index in dimension 1 is a multiple of 128" in failure.reason


def test_a_transfer_of_one_bf16_row_is_blamed_on_its_line_of_the_schedule(variant: Variant) -> None:
    one = "start(embedding, position[0], token, 0, 1, single.at[0])"
    kernel = variant(
        ('"embedding": ("int32"', '"embedding": ("bfloat16"'),
        (one, one + "  # here"),
        ("token, 0, 1, single.at[0])", "half, 0, 1, single.at[0])"),
        ("wait(embedding, token, 1", "wait(embedding, half, 1"),
        ("token, arrived", "token, half, arrived"),
        (
            "            pltpu.SemaphoreType",
            "            pltpu.VMEM((8, 128), jnp.bfloat16),\n            pltpu.SemaphoreType",
        ),
    )
    failure = refusal(kernel).failure
    assert (failure.stage, failure.line) == ("compile", line_with(kernel, "# here"))


def test_a_primitive_that_mosaic_lacks(variant: Variant) -> None:
    kernel = variant(("y[...] = jnp.zeros(y.shape, y.dtype)", "y[...] = jnp.cumsum(y[...], axis=1)  # here"))
    failure = refusal(kernel).failure
    assert (failure.stage, failure.line) == ("lower", line_with(kernel, "# here"))
    assert failure.reason == "NotImplementedError: Unimplemented primitive in Pallas TPU lowering for tc: cumsum."


def test_shapes_that_do_not_match(variant: Variant) -> None:
    kernel = variant(("y[0:1] = token[0:1].astype", "y[0:2] = token[0:3].astype"))
    failure = refusal(kernel).failure
    assert failure.line == line_with(kernel, "y[0:2] =")
    assert failure.reason.startswith(
        "ValueError: Invalid shape for `swap`. Ref shape: (8, 128). Expected shape: (2, 128)"
    )


def test_an_error_inside_a_helper_names_the_call_first_and_the_detail_has_the_traceback(variant: Variant) -> None:
    kernel = variant(("    weight = pltpu.bitcast(", "    weight = pltpu.bitcats("))
    failure = refusal(kernel).failure
    assert failure.line == line_with(kernel, "multiply(y[...], pool, 0)")
    assert f"line {line_with(kernel, 'pltpu.bitcats(')}, in multiply" in failure.detail


def test_a_file_that_is_not_python(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("NAME = 'x'\nARGUMENTS = {\n")
    failure = refusal(kernel).failure
    assert (failure.stage, failure.line) == ("load", 2)


def test_an_unknown_topology_and_too_many_devices(layers: Path) -> None:
    with pytest.raises(CompileFailed, match=r"load failed: .*Invalid TPU external name: TPU9x"):
        compile_kernel(layers, "tpu9x:2x2x1", dump=False)
    with pytest.raises(CompileFailed, match=r"load failed: .*tpu7x:2x2x1 has 8 devices, 9 are to be used"):
        compile_kernel(layers, TOPOLOGY, 9, dump=False)


def test_no_answer_in_time(layers: Path) -> None:
    assert refusal(layers, timeout=0.5).failure.reason == "no answer after 0.5 seconds"


def test_a_crash_of_the_process_is_an_error_message(variant: Variant) -> None:
    kernel = variant(
        ("def decode_step(", "import os\n\n\ndef decode_step("), ("    call = ", "    os.abort()\n    call = ")
    )
    failure = refusal(kernel).failure
    assert (failure.stage, failure.reason) == ("lower", "the process ended with signal SIGABRT")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("INTERNAL: Mosaic failed to compile TPU kernel: Unsupported type\nlong\n", "Unsupported type"),
        ("INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `a` HLO name `a.1`: Bad\n", "Bad"),
        ("RESOURCE_EXHAUSTED: E1001: Title:\nRan out\n", "E1001: Title: Ran out"),
    ],
)
def test_the_reason_is_one_line_without_the_compilers_prefixes(message: str, reason: str) -> None:
    assert reason_of(message, "JaxRuntimeError") == reason

"""A kernel as a portable artifact."""

import pytest

from schedc.backends.pallas.aot.export import export_kernel
from schedc.backends.pallas.aot.failure import CompileFailed
from schedc.backends.pallas.aot.load import load_kernel

from .conftest import KERNELS, TOPOLOGY, Variant, line_with

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize(("name", "devices"), [("layers", 1), ("exchange", 8)])
def test_the_artifact_is_for_tpus_and_has_the_kernels_arguments(name: str, devices: int) -> None:
    from jax import export

    artifact = export.deserialize(bytearray(export_kernel(KERNELS / f"{name}.py", TOPOLOGY, devices)))
    assert (artifact.platforms, artifact.nr_devices) == (("tpu",), devices)
    arguments = load_kernel(KERNELS / f"{name}.py").ARGUMENTS.values()
    assert [(str(aval.dtype), aval.shape) for aval in artifact.in_avals] == list(arguments)


def test_a_kernel_that_cannot_be_exported_names_its_line(variant: Variant) -> None:
    kernel = variant(("y[0:1] = token[0:1].astype", "y[0:2] = token[0:3].astype"))
    with pytest.raises(CompileFailed, match="export failed: ValueError: Invalid shape for `swap`") as caught:
        export_kernel(kernel, TOPOLOGY)
    assert caught.value.failure.line == line_with(kernel, "y[0:2] =")

"""Every product that the table gives a chip goes through its compiler."""

from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.failure import CompileFailed
from schedc.backends.pallas.aot.report import CompileReport
from schedc.target.products import products_file
from schedc.target.target import parse_target

from .conftest import KERNELS

pytestmark = pytest.mark.kernel
SLOW = ("v5p", "v6e")


@pytest.mark.parametrize(
    "chip", [pytest.param(c, marks=[pytest.mark.slow] if c in SLOW else []) for c in products_file().chips]
)
def test_every_product_compiles(chip: str, tmp_path: Path) -> None:
    assert compile_products(chip, chip, tmp_path).code_bytes > 0


def test_a_chip_that_is_said_to_lack_e2m1_lacks_it(tmp_path: Path) -> None:
    with pytest.raises(CompileFailed, match=r"Unsupported type .*f4E2M1FN"):
        compile_products("tpu7x", "v6e", tmp_path)


def compile_products(of: str, chip: str, folder: Path) -> CompileReport:
    """Compile for `chip` what the table gives the chip `of`."""
    text = (KERNELS / "products.py").read_text()
    assert text.count('parse_target("tpu7x")') == 1
    path = folder / "kernel.py"
    path.write_text(text.replace('parse_target("tpu7x")', f'parse_target("{of}")'))
    return compile_kernel(path, parse_target(chip).topology_name, dump=False, annotate=False)

"""Kernels to compile, and variants of them with one seeded change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.report import CompileReport

KERNELS = Path(__file__).parent / "kernels"
TOPOLOGY = "tpu7x:2x2x1"

Variant = Callable[..., Path]


@pytest.fixture(scope="session")
def layers() -> Path:
    return KERNELS / "layers.py"


@pytest.fixture(scope="session")
def report(layers: Path) -> CompileReport:
    return compile_kernel(layers, TOPOLOGY)


@pytest.fixture
def variant(layers: Path, tmp_path: Path) -> Variant:
    """The kernel `layers` with pieces of its text replaced: `variant((old, new), …)` is the path of the new file."""

    def make(*changes: tuple[str, str]) -> Path:
        text = layers.read_text()
        for old, new in changes:
            assert text.count(old) >= 1, f"{old!r} is not in the kernel"
            text = text.replace(old, new, 1)
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return path

    return make


def line_with(kernel: Path, piece: str) -> int:
    """Number of the one line of a kernel that contains a piece of text."""
    lines = [number for number, line in enumerate(kernel.read_text().splitlines(), 1) if piece in line]
    assert len(lines) == 1, f"{piece!r} is in lines {lines}"
    return lines[0]

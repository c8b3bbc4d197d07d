"""Every collective goes through the real TPU compiler, which keeps the order of its transfers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.transfers import check_order
from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.check import expected_transfers
from tests.lower.collectives.programs import Case, cases, program

pytestmark = pytest.mark.kernel


def named(case: Case) -> str:
    return f"{case.algorithm}-{case.kind}-{case.wire}-{case.devices}"


def check(case: Case, topology: str, folder: Path) -> None:
    made = replace(program(case), attributes=(("vmem_limit_bytes", 1 << 25),))
    kernel = emit(made)
    path = folder / "kernel.py"
    path.write_text(kernel.source)
    wanted = [transfer for transfer in expected_transfers(made, kernel) if transfer[2] != "vmem_to_hbm"]
    assert wanted, "outputs this small are given VMEM by XLA, all else is a transfer"
    assert check_order(compile_kernel(path, topology, case.devices), wanted) == []


EIGHT = [
    *(case for case in cases(8) if case.kind == "all_reduce" and case.wire == "bf16"),
    Case("two_phase", "all_reduce", 8, "bf16", rows=72, used=3),
]


@pytest.mark.parametrize("case", EIGHT, ids=named)
def test_an_all_reduce_over_eight_devices_compiles(case: Case, tmp_path: Path) -> None:
    check(case, "tpu7x:2x2x1", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in cases(8) if case not in EIGHT], ids=named)
def test_all_others_over_eight_devices_compile(case: Case, tmp_path: Path) -> None:
    check(case, "tpu7x:2x2x1", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hierarchical", "two_phase"])
def test_an_all_reduce_over_four_hosts_compiles(name: str, tmp_path: Path) -> None:
    check(Case(name, "all_reduce", 32, "bf16"), "tpu7x:2x2x4", tmp_path)

"""Issue cycles of operations: the formulas against what the TPU compiler made of them."""

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from schedc.cost.operations import FEATURES, CycleTable, Work, operations_file
from schedc.ir.program import Compute, Operand, Region
from schedc.target.target import parse_target
from schedc.yaml_text import parse_yaml

MEASURED = parse_yaml(files("schedc.cost").joinpath("measured.yaml").read_text())


def matmul(depth: int, panels: int, dtype: str = "bf16", rows: int = 8) -> Compute:
    attributes = (("rows", rows), ("depth", depth), ("panels", panels), ("dtype", dtype))
    return Compute("matmul", (Operand("w", "read", Region("w", 8)),), attributes=attributes)


def cycles(op: Compute) -> float:
    amount, note = CycleTable.on(parse_target("tpu7x")).cycles(op)
    assert note is None
    return amount


def test_a_dot_takes_its_bytes_at_the_rate_of_the_chip():
    """2 MiB more of bf16 weights at 4096 bytes a cycle are 512 cycles more, within 5 %."""
    gained = cycles(matmul(8192, 2)) - cycles(matmul(4096, 2))
    assert gained == pytest.approx(512, rel=0.05)


def test_a_dtype_with_half_the_bytes_and_half_the_rate_takes_as_long():
    assert cycles(matmul(4096, 8, "int8")) == cycles(matmul(4096, 8, "bf16"))


def test_a_chip_with_dots_at_half_the_rate_takes_twice_as_long():
    target = parse_target("tpu7x")
    cost = target.cost.model_copy(update={"dot_bytes_per_cycle": {"bf16": 2048.0}})
    slow = replace(target, chip=target.chip.model_copy(update={"cost": cost}))
    assert CycleTable.on(slow).cycles(matmul(65536, 8))[0] == pytest.approx(2 * cycles(matmul(65536, 8)), rel=0.01)


def test_f32_dots_take_several_passes():
    assert 4 < cycles(matmul(4096, 8, "f32")) / cycles(matmul(4096, 8, "bf16")) < 16


def test_every_kind_of_the_formulas_is_measured_and_fitted():
    kinds = operations_file().kinds
    assert {row["operation"] for row in MEASURED["operations"]} == set(kinds)
    assert set(kinds) <= set(FEATURES)


@pytest.mark.parametrize("row", MEASURED["operations"], ids=lambda row: row["operation"])
def test_the_formulas_are_near_the_measurement(row: dict):
    """Within half, or 150 cycles: an operation shares its cycles with its neighbours, which differ by place."""
    kind = row["operation"]
    features = FEATURES[kind](Work(row["attributes"], frozenset(row["operands"]), {"bf16": 4096.0}, drain=220.0))
    formula = operations_file().kinds[kind]
    predicted = formula.base + sum(formula.per.get(name, 0.0) * amount for name, amount in features.items())
    assert predicted == pytest.approx(float(np.mean(row["cycles"])), rel=0.5, abs=150)


def test_what_was_not_measured_is_noted():
    odd = matmul(4096, 8, "int3")
    assert CycleTable.on(parse_target("tpu7x")).cycles(odd)[1] == "matmul: dot_int3 not measured, counted as 0"


def test_a_kind_that_was_not_measured_is_counted_as_its_nearest():
    attributes = (("rows", 8), ("columns", 4096), ("kind", "rms"))
    nearest, missing = (Compute(kind, (), attributes=attributes) for kind in ("norm", "residual_add_norm"))
    table = CycleTable.on(parse_target("tpu7x"))
    note = "residual_add_norm: not measured, counted as norm"
    assert table.cycles(missing) == (table.cycles(nearest)[0], note)

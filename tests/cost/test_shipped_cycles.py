"""The shipped table of the compiler's cycles, and the formulas beside it."""

import pytest

from schedc.compiler.pipeline import Request, build
from schedc.cost.compared import cycles_by_kind
from schedc.cost.machine import Machine
from schedc.cost.profile import read_profile
from schedc.cost.report import predict
from schedc.cost.signature import compute_signature
from schedc.ir.program import Compute, Program, walk
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import Target, parse_target

TARGET = parse_target("tpu7x:2x2x4", 32)
TABLE = "kimi-k3-tpu7x"


@pytest.fixture(scope="module")
def program() -> Program:
    return built(TARGET, {"slot_mib": 4})


def built(target: Target, settings: dict[str, int | float], policy: str = "ring") -> Program:
    spec = load_spec("kimi-k3")
    talk = communication_for(spec.hidden, 1, target)
    shape = StepShape(1, 4096, devices=target.devices_used, communication=talk)
    return build(Request(spec, target, shape, policy, settings))[1]


def test_the_table_knows_the_computations_of_the_model_it_is_of(program: Program) -> None:
    """All but a few, if the lowering has changed since: `python -m benchmarks.profiles kimi-k3-tpu7x` makes it anew."""
    profile = read_profile(TABLE)
    for made in (program, built(TARGET, {"slot_mib": 4, "depth": 6})):
        computations = [op for op in walk(made.body) if isinstance(op, Compute)]
        known = [op for op in computations if compute_signature(op) in profile.spreads]
        assert len(known) >= 0.9 * len(computations)
        priced = predict(made, TARGET, machine=Machine.of(TARGET, profile), analyse=False).priced_by
        assert priced.startswith(f"{profile.source}, by signature")


def test_the_formulas_are_within_a_fifth_of_the_compiler_wherever_it_matters(program: Program) -> None:
    """Every kind with a hundredth of the step's cycles. The edges of loops are what matmuls drain in."""
    kinds = {kind.name: kind for kind in cycles_by_kind(program, read_profile(TABLE), Machine.of(TARGET).table)}
    whole = sum(kind.cycles for kind in kinds.values())
    assert sum(kind.by_table for kind in kinds.values()) == pytest.approx(whole, rel=0.05)
    drained = kinds.pop("matmul"), kinds.pop("loop")
    assert sum(k.by_table for k in drained) == pytest.approx(sum(k.cycles for k in drained), rel=0.1)
    far = {
        name: kind.table_over_profile
        for name, kind in kinds.items()
        if kind.cycles > whole / 100 and kind.by_table != pytest.approx(kind.cycles, rel=0.2)
    }
    assert far == {}

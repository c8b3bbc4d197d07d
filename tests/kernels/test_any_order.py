"""Phases in another order, refills deferred: the kernel computes what the reference does, without races."""

import pytest

from schedc.compiler.interpret import addressed, interpret
from schedc.compiler.pipeline import limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, in_format
from tests.kernels.test_experts_devices import LATENT
from tests.reference.moe_specs import small_moe
from tests.reference.recurrent_specs import GATED_DELTA, alike
from tests.schedule import any_plan

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize(
    ("spec", "seed", "mode"),
    [
        pytest.param(small_moe(**LATENT), 1, "eager", id="latent experts"),
        pytest.param(small_moe(**LATENT), 2, "on_wait", id="latent experts, late", marks=pytest.mark.slow),
        pytest.param(alike(GATED_DELTA), 3, "on_wait", id="states", marks=pytest.mark.slow),
    ],
)
def test_a_plan_of_chance_computes_what_the_reference_does(spec: ModelSpec, seed: int, mode: Mode) -> None:
    spec, target = in_format(spec, "f32"), parse_target("tpu7x")
    shape = StepShape(1, 50, logits=True, devices=2)
    settings = {"seed": seed, "slot_mib": 0.02, "small_cache": 1}
    made = schedule(spec, shape, target, f"{any_plan.__file__}:any_plan", settings)
    assert made.plan.deferred and made.plan.order
    small = Shrunk(spec, shape, made, ())
    program = addressed(small, target)
    assert verify(program, limits_of(target)).proven
    run = interpret(small, program, mode, 300)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3

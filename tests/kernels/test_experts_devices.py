"""Experts over several devices, against the reference on one: f32, so that any mistake shows."""

from typing import Any

import pytest

from schedc.compiler.interpret import addressed, interpret
from schedc.compiler.shrink import Shrunk
from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.placement.experts import experts_of
from schedc.placement.rules import PlacementRules
from schedc.schedule.build import schedule
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, in_format, small_tiles
from tests.reference.moe_specs import SHARED, SIGMOID, small_moe
from tests.reference.small_specs import RMS

pytestmark = pytest.mark.kernel

TARGET = parse_target("tpu7x")
LATENT = {
    "router": SIGMOID,
    "experts": 6,
    "latent": {"width": 200, "norm_in": RMS, "norm_out": RMS},
    "expert_norm": RMS,
    "shared": SHARED,
}
BIASES = {"gate": True, "up": True, "down": True}
ONE_GROUP = SIGMOID | {"groups": 4, "groups_kept": 1}


def split(spec: ModelSpec, devices: int) -> tuple[int, int]:
    """Groups of experts, and devices that share one."""
    moe = spec.layers[0].pattern[0].feed_forward
    found = experts_of(moe, devices, PlacementRules())
    return found.groups, found.tensor_parallel


@pytest.mark.parametrize(
    ("rows", "devices", "groups", "moe"),
    [
        pytest.param(1, 4, 4, {"router": ONE_GROUP, "experts": 8}, id="one device has all that are chosen"),
        pytest.param(3, 2, 2, {"experts": 6, "top_k": 6}, id="every expert is chosen", marks=pytest.mark.slow),
        pytest.param(
            2,
            2,
            2,
            {"experts": 5, "shared": SHARED, "shared_gate": True},
            id="an odd number, and a shared one",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            2,
            2,
            1,
            {"width": 256, "bias": BIASES},
            id="devices share every expert and its biases",
            marks=pytest.mark.slow,
        ),
        pytest.param(2, 4, 2, {"width": 256, "bias": BIASES}, id="two devices share an expert, twice"),
        pytest.param(2, 2, 2, LATENT, id="the sum is one of a latent space"),
    ],
)
@pytest.mark.parametrize("mode", ["eager", pytest.param("on_wait", marks=pytest.mark.slow)])
def test_devices_agree_with_the_reference(
    rows: int, devices: int, groups: int, moe: dict[str, Any], mode: Mode
) -> None:
    spec = in_format(small_moe(**moe), "f32")
    assert split(spec, devices) == (groups, devices // groups)
    shape = StepShape(rows, 50, logits=True, devices=devices)
    small = Shrunk(spec, shape, schedule(spec, shape, TARGET, small_tiles("ring")), ())
    assert interpret(small, addressed(small, TARGET), mode, 300).problems == ()


def test_an_expert_with_a_norm_of_its_output_is_not_divided() -> None:
    moe = small_moe(**LATENT | {"width": 256}).layers[0].pattern[0].feed_forward
    assert experts_of(moe, 2, PlacementRules()).tensor_parallel == 1
    rules = PlacementRules.model_validate({"experts": {"expert_parallel": 1, "tensor_parallel": 2}})
    with pytest.raises(SpecError, match=r"experts\.tensor_parallel: 2 devices cannot share an expert with a norm"):
        experts_of(moe, 2, rules)

"""Delta rules over several devices, against the reference on one: f32, so that any mistake shows."""

import pytest

from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.placement.heads import delta_split
from schedc.placement.rules import PlacementRules
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, in_format, small_tiles
from tests.reference.recurrent_specs import GATED_DELTA, KDA, alike

pytestmark = pytest.mark.kernel

UNEVEN = in_format(alike(KDA), "f32")
FEW_KEYS = in_format(alike(GATED_DELTA, value_heads=8), "f32")


def request(spec: ModelSpec, devices: int) -> Request:
    return Request(
        spec, parse_target("tpu7x:2x2x1", devices), StepShape(2, 60, logits=True, devices=devices), small_tiles("ring")
    )


@pytest.mark.parametrize(
    ("spec", "devices", "mode"),
    [
        pytest.param(UNEVEN, 2, "on_wait", id="kda, the second device has a head less"),
        pytest.param(UNEVEN, 4, "eager", id="kda, the last device has no head", marks=pytest.mark.slow),
        pytest.param(FEW_KEYS, 2, "eager", id="gated delta, a key head each", marks=pytest.mark.slow),
        pytest.param(FEW_KEYS, 4, "on_wait", id="gated delta, two devices share a key head", marks=pytest.mark.slow),
    ],
)
def test_devices_agree_with_the_reference(spec: ModelSpec, devices: int, mode: Mode) -> None:
    asked = request(spec, devices)
    made, program = build(asked)
    verdict = verify(program, limits_of(asked.target))
    assert verdict.proven, str(verdict)
    run = interpret(Shrunk(spec, asked.shape, made, ()), program, mode, 500)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3


def test_value_heads_are_beside_the_key_head_that_they_read() -> None:
    mixer = FEW_KEYS.layers[0].pattern[0].mixer
    split = delta_split(mixer, 4, PlacementRules())
    held = [(list(split.kv.held(device)), list(split.query.held(device))) for device in range(4)]
    assert held == [([0], [0, 1]), ([0], [2, 3]), ([1], [4, 5]), ([1], [6, 7])]

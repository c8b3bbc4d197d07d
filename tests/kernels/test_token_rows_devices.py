"""Rows that are tokens of one sequence on several devices, against the reference on one: f32, so that mistakes show."""

import pytest

from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.placement.rules import PlacementRules
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, in_format, small_tiles
from tests.reference.recurrent_specs import FEATURES
from tests.reference.small_specs import latent_spec, small_spec

pytestmark = pytest.mark.kernel

ATTENTION = in_format(small_spec(), "f32")
LATENTS = in_format(latent_spec({"heads": 5}), "f32")
STATES = in_format(FEATURES["gated delta beside attention"], "f32")
WHOLE, SEQUENCE = PlacementRules(), PlacementRules(kv="sequence")


def request(spec: ModelSpec, devices: int, rules: PlacementRules, rows: int = 8) -> Request:
    shape = StepShape(rows, 40, logits=True, devices=devices, placement=rules, rows_are="tokens")
    return Request(spec, parse_target("tpu7x:2x2x1", devices), shape, small_tiles("ring"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "devices", "rules", "mode"),
    [
        pytest.param(ATTENTION, 2, WHOLE, "on_wait", id="heads"),
        pytest.param(LATENTS, 2, SEQUENCE, "on_wait", id="tiles of latents in turn, on_wait"),
        pytest.param(LATENTS, 4, SEQUENCE, "eager", id="tiles of latents in turn, eager"),
        pytest.param(STATES, 2, WHOLE, "eager", id="states"),
    ],
)
def test_devices_agree_with_the_reference(spec: ModelSpec, devices: int, rules: PlacementRules, mode: Mode) -> None:
    asked = request(spec, devices, rules)
    made, program = build(asked)
    run = interpret(Shrunk(spec, asked.shape, made, ()), program, mode, 500)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3


@pytest.mark.parametrize(
    ("spec", "devices", "rules"),
    [(ATTENTION, 2, WHOLE), (LATENTS, 2, SEQUENCE), (LATENTS, 8, SEQUENCE), (STATES, 2, WHOLE)],
)
@pytest.mark.parametrize("rows", [1, 16])
def test_devices_are_proven(spec: ModelSpec, devices: int, rules: PlacementRules, rows: int) -> None:
    asked = request(spec, devices, rules, rows)
    verdict = verify(build(asked)[1], limits_of(asked.target))
    assert verdict.proven, str(verdict)

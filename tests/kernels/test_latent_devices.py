"""Latent attention over several devices, against the reference on one: f32, so that any mistake shows."""

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
from tests.reference.small_specs import latent_spec

pytestmark = pytest.mark.kernel

SPEC = in_format(latent_spec({"heads": 5, "output_gate": True}), "f32")
SEQUENCE = PlacementRules(kv="sequence")


def two_runs() -> ModelSpec:
    """A layer, then three: places of their own that share buffers and exchanges."""
    data = SPEC.model_dump(mode="json")
    pattern = data["layers"][0]["pattern"]
    data["layers"] = [{"repeat": 1, "pattern": pattern}, {"repeat": 3, "pattern": pattern}]
    return ModelSpec.model_validate(data)


def request(devices: int, rules: PlacementRules, rows: int = 2, spec: ModelSpec = SPEC) -> Request:
    shape = StepShape(rows, 60, logits=True, devices=devices, placement=rules)
    return Request(spec, parse_target("tpu7x:2x2x1", devices), shape, small_tiles("ring"))


@pytest.mark.parametrize(
    ("devices", "rows", "rules", "mode"),
    [
        pytest.param(2, 2, SEQUENCE, "on_wait", id="tiles in turn, on_wait"),
        pytest.param(2, 1, SEQUENCE, "eager", id="tiles in turn, eager", marks=pytest.mark.slow),
        pytest.param(4, 3, SEQUENCE, "eager", id="more devices than tiles", marks=pytest.mark.slow),
        pytest.param(2, 2, PlacementRules(), "eager", id="the whole cache on each", marks=pytest.mark.slow),
    ],
)
def test_devices_agree_with_the_reference(devices: int, rows: int, rules: PlacementRules, mode: Mode) -> None:
    asked = request(devices, rules, rows)
    made, program = build(asked)
    verdict = verify(program, limits_of(asked.target))
    assert verdict.proven, str(verdict)
    run = interpret(Shrunk(SPEC, asked.shape, made, ()), program, mode, 500)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3


@pytest.mark.parametrize("spec", [SPEC, two_runs()], ids=["one run", "two runs"])
def test_tiles_in_turn_are_proven_on_eight_devices(spec: ModelSpec) -> None:
    asked = request(8, SEQUENCE, spec=spec)
    verdict = verify(build(asked)[1], limits_of(asked.target))
    assert verdict.proven, str(verdict)


def test_all_places_share_the_buffers_of_tiles_and_the_exchanges() -> None:
    buffers = [buffer.name for buffer in build(request(2, SEQUENCE, spec=two_runs()))[1].buffers]
    for name in ("kv_new", "kv_old", "shared_q", "shared_softmax_in"):
        assert len([found for found in buffers if found.startswith(name)]) == 1


@pytest.mark.slow
def test_two_runs_agree_with_the_reference() -> None:
    asked = request(2, SEQUENCE, spec=two_runs())
    made, program = build(asked)
    run = interpret(Shrunk(two_runs(), asked.shape, made, ()), program, "on_wait", 500)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3


def test_each_device_has_its_share_of_the_tiles_only() -> None:
    whole, shared = ({a.name: a.rows for a in build(request(2, r))[1].arrays} for r in (PlacementRules(), SEQUENCE))
    assert shared["kv"] * 2 == whole["kv"]

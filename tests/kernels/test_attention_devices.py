"""What attention needs from the heads of other devices, against the reference on one device; f32, any mistake shows."""

from typing import Any

import pytest

from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from tests.kernels.built import Mode, in_format, small_tiles
from tests.reference.small_specs import RMS, small_spec

pytestmark = pytest.mark.kernel

JOINT = {"qk_norm": RMS, "qk_norm_over": "heads"}
BIASED = {"q": True, "k": True, "v": True, "o": True}


@pytest.mark.parametrize(
    ("devices", "mode", "mixer"),
    [
        pytest.param(
            2, "on_wait", JOINT | {"heads": 6, "kv_heads": 3, "head_dim": 16, "bias": BIASED}, id="with padding"
        ),
        pytest.param(
            4,
            "eager",
            JOINT | {"heads": 8, "kv_heads": 2, "head_dim": 80, "sinks": True, "output_gate": True},
            id="kv heads on two devices each, gates, sinks",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_norms_over_the_heads_of_all_devices(devices: int, mode: Mode, mixer: dict[str, Any]) -> None:
    spec, shape = in_format(small_spec(mixer), "f32"), StepShape(2, 40, logits=True, devices=devices)
    request = Request(spec, parse_target("tpu7x:2x2x1", devices), shape, small_tiles("ring"))
    made, program = build(request)
    verdict = verify(program, limits_of(request.target))
    assert verdict.proven, str(verdict)
    run = interpret(Shrunk(spec, shape, made, ()), program, mode, 400)
    assert run.problems == ()
    assert run.steps > 3
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3

"""A shrunk model keeps the shape of the schedule, and what makes a layer what it is."""

import pytest

from schedc.compiler.pipeline import Request
from schedc.compiler.shrink import shrink
from schedc.compiler.skeleton import differences, skeleton
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.lower.longrope import longest_context
from schedc.placement.heads import split_heads
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.one_device import models_on_one_device
from tests.reference.small_specs import FEATURES, small_spec

TARGET = parse_target("tpu7x")
POLICIES = ("ring", "double_buffer", "just_in_time")


@pytest.mark.parametrize("rows", [1, 4, 16])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("model", models_on_one_device())
def test_the_schedule_of_a_shrunk_model_has_the_shape_of_the_models(model: str, policy: str, rows: int) -> None:
    spec = load_spec(model)
    request = Request(spec, TARGET, StepShape(rows, min(8192, longest_context(spec))), policy)
    trips = [min(3, run.repeat) * len(run.pattern) for run in spec.layers]
    for number_format in (None, "f32"):
        small = shrink(request, number_format)
        assert small.differences == ()
        assert sum(trips) <= small.spec.num_layers <= 3 * sum(len(run.pattern) for run in spec.layers)
        assert small.spec.hidden <= 2560
        assert small.shape.rows == rows
        assert small.shape.context <= 4 * small.schedule.plan.kv_tokens


def test_what_a_shrunk_model_keeps() -> None:
    """SmolLM2: 576 wide, 30 layers of 9 heads over 3 kv heads of 64, 1536 wide inside."""
    small = shrink(Request(load_spec("smollm2-135m"), TARGET, StepShape(2, 2048)))
    spec, mixer = small.spec, small.spec.layers[0].pattern[0].mixer
    assert (spec.hidden, spec.num_layers) == (192, 3)  # Still half a panel more than whole ones.
    assert (mixer.heads, mixer.kv_heads, mixer.head_dim) == (9, 3, 64)
    assert spec.layers[0].pattern[0].feed_forward.width == 256
    assert (small.shape.context, small.schedule.plan.kv_tokens) == (128, 32)
    assert (spec.quantization.weights, spec.kv.dtype) == ("bf16", "bf16")


def test_a_window_is_shrunk_with_the_cache() -> None:
    spec = load_spec("starcoder2-7b")
    windows = {}
    for context in (4096, 8192):
        small = shrink(Request(spec, TARGET, StepShape(1, context)))
        windows[context] = small.spec.layers[0].pattern[0].mixer.window, small.shape.context
    assert windows[4096][0] >= windows[4096][1]  # Never full, as before.
    assert windows[8192][0] < windows[8192][1]


@pytest.mark.parametrize("name", ["two runs", "sandwich norm", "attention biases"])
def test_a_model_that_is_small_already_stays_what_it_is(name: str) -> None:
    small = shrink(Request(FEATURES[name], TARGET, StepShape(2, 50)))
    assert small.spec.layers == FEATURES[name].layers
    assert small.differences == ()


PROGRAM = """\
program p {{
  pool work rows=64
  buffer tile in work rows=8 slots=2 align=8 at 0
  hbm weights rows=80 weight
  semaphore arrived[2] dma
  start weights[0 +: 8] -> tile<0>[0 +: 8] signals arrived[0]
  start weights[8 +: 8] -> tile<1>[0 +: 8] signals arrived[1]
  loop l < {trips} {{
    wait arrived[l % 2] rows=8
    {use}compute use(x: read tile<l % 2>[0 +: 8]) {{scale={scale}}}
  }}
}}
"""


def test_a_skeleton_has_no_sizes() -> None:
    program = parse_program(PROGRAM.format(trips=10, use="", scale=0.5))
    assert skeleton(program) == (
        "start weights -> tile signals arrived",  # Equal neighbours count once.
        "loop l",
        "  wait arrived",
        "  compute use(x: read tile)",
    )
    assert differences(program, parse_program(PROGRAM.format(trips=3, use="", scale=2.0))) == ()


def test_a_difference_is_a_diff() -> None:
    program = parse_program(PROGRAM.format(trips=10, use="", scale=0.5))
    other = parse_program(PROGRAM.format(trips=10, use="compute zero(out: write tile<0>[0 +: 8])\n    ", scale=0.5))
    assert differences(program, other) == ("@@ -3,0 +4 @@", "+  compute zero(out: write tile)")


@pytest.mark.parametrize(("model", "devices"), [("llama-3.1-8b", 8), ("smollm2-135m", 4), ("qwen2.5-7b", 2)])
def test_a_model_of_several_devices_shrinks_to_one_of_as_many(model: str, devices: int) -> None:
    spec = load_spec(model)
    small = shrink(Request(spec, parse_target("tpu7x", devices), StepShape(2, 4096, devices=devices)), "f32")
    assert small.differences == ()
    assert small.shape.devices == small.schedule.program.devices == devices
    full, shrunk = (one.layers[0].pattern[0].mixer for one in (spec, small.spec))
    before, after = (split_heads(mixer.heads, mixer.kv_heads, devices).kv for mixer in (full, shrunk))
    assert (before.every, before.padding > 0) == (after.every, after.padding > 0)


@pytest.mark.parametrize(("block", "expected"), [(4, 4), (2, 2), (16, 12), (30, 14), (3, 3)])
def test_blocks_of_a_small_model_begin_where_they_did(block: int, expected: int) -> None:
    """Ten trips of a period of four are cut to three, of 16 layers in all, in which no second block of 16 begins."""
    pattern = small_spec().model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"] * 4
    residual = {"kind": "block_attention", "eps": 1e-5, "block": block}
    spec = small_spec(layers=[{"repeat": 1, "pattern": pattern}, {"repeat": 10, "pattern": pattern}], residual=residual)
    small = shrink(Request(spec, TARGET, StepShape(2, 50)))
    assert small.spec.residual.block == expected
    assert small.differences == ()


def test_taps_of_a_small_model_are_at_the_same_places() -> None:
    spec = small_spec().model_copy(update={"layers": (small_spec().layers[0].model_copy(update={"repeat": 9}),)})
    small = shrink(Request(spec, TARGET, StepShape(2, 50, taps=(0, 7))))
    assert small.shape.taps == (0, 2)
    assert small.differences == ()

"""Latent attention with a cache of keys and values of every head, against the reference and the absorbed kernel."""

import pytest

from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, compile_model, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.compiler.telling_steps import telling_steps
from schedc.compiler.trial import problems
from schedc.errors import SpecError
from schedc.ir.verify import verify
from schedc.lower.graph import RowsAre, StepShape
from schedc.placement.rules import PlacementRules
from schedc.spec.latent_cache import with_latent_cache
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, build_kernel, built_of, in_format, small_tiles, step, trial
from tests.kernels.expanded_steps import apart_in_a_process
from tests.reference.small_specs import LATENT, latent_spec

pytestmark = pytest.mark.kernel

slow, long = pytest.mark.slow, pytest.mark.long
GATED = {"latent, no rope, output gate": latent_spec({"rope": None, "output_gate": True})}
EXPANDED = {name: with_latent_cache(spec, "expanded") for name, spec in (LATENT | GATED).items()}
NINE_HEADS = with_latent_cache(latent_spec({"heads": 9, "nope_dim": 130, "value_dim": 140}), "expanded")
"""More than a group of eight, keys and values of two panels."""
SHAPE = StepShape(rows=2, context=50, logits=True)
FIRST = {("latent, odd sizes", "on_wait"), ("latent, no rope, output gate", "eager")}
"""What all runs of the tests interpret."""


def agrees(spec: ModelSpec, mode: Mode, shape: StepShape = SHAPE, every: int = 1) -> None:
    """The program is proven, and steps at the borders of tiles do what the reference does."""
    built = build_kernel(spec, shape, small_tiles("ring"))
    verdict = verify(built.program, limits_of(parse_target("tpu7x")))
    assert verdict.proven, str(verdict)
    beside = trial(built, spec, shape, mode)
    steps = [((0, 47), None), ((17, 32), None)]
    if shape.rows_are == "tokens":
        steps = telling_steps(spec, shape, built.schedule.plan.kv_tokens)[::every]
    for positions, active in steps:
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == [], (positions, active)
        assert not raced


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=[] if (name, mode) in FIRST else [long])
        for name in EXPANDED
        for mode in ("eager", "on_wait")
    ],
)
def test_the_kernel_agrees_with_the_reference(name: str, mode: Mode) -> None:
    agrees(in_format(EXPANDED[name], "f32"), mode)


@long
def test_heads_in_groups_of_eight_and_wide_values() -> None:
    agrees(in_format(NINE_HEADS, "f32"), "on_wait")


@long
def test_tokens_of_one_sequence_see_what_is_before_each() -> None:
    shape = StepShape(8, 60, logits=True, rows_are="tokens")
    agrees(in_format(EXPANDED["latent, output gate"], "f32"), "on_wait", shape, every=3)


@long
@pytest.mark.parametrize("kv", [{"dtype": "bf16"}, {"dtype": "fp8"}])
def test_caches_of_other_formats(kv: dict[str, str]) -> None:
    spec = in_format(EXPANDED["latent, output gate"], "bf16").model_dump(mode="json") | {"kv": kv}
    agrees(ModelSpec.model_validate(spec), "on_wait")


@long
def test_pages_in_any_order_agree_with_the_reference() -> None:
    kv = {"dtype": "f32", "layout": "paged", "page_tokens": 16}
    spec = ModelSpec.model_validate(in_format(EXPANDED["latent attention"], "f32").model_dump(mode="json") | {"kv": kv})
    shape = StepShape(rows=3, context=50, logits=True, pages=17)
    compiled = compile_model(Request(spec, parse_target("tpu7x"), shape))
    beside = trial(built_of(compiled.schedule, compiled.program), spec, shape, "on_wait")
    for positions, active in (((0, 47, 20), None), ((17, 32, 9), (True, False, True))):
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == [] and not raced


@pytest.mark.parametrize("devices", [pytest.param(1, marks=long), pytest.param(2, marks=slow)])
def test_both_caches_give_the_same_logits_step_after_step(devices: int) -> None:
    of_caches, of_steps = apart_in_a_process(devices)
    assert of_caches < 1e-5 and of_steps > 0.1


def request(devices: int, rules: PlacementRules | None = None, rows_are: RowsAre = "sequences") -> Request:
    spec = in_format(with_latent_cache(latent_spec({"heads": 5, "output_gate": True}), "expanded"), "f32")
    shape = StepShape(2, 60, True, devices, rules or PlacementRules(), rows_are=rows_are)
    return Request(spec, parse_target("tpu7x:2x2x1", devices), shape, small_tiles("ring"))


@long
def test_two_devices_agree_with_the_reference() -> None:
    asked = request(2)
    made, program = build(asked)
    run = interpret(Shrunk(asked.spec, asked.shape, made, ()), program, "on_wait", 500)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3


@pytest.mark.parametrize("rows_are", ["sequences", "tokens"])
def test_eight_devices_are_proven_and_the_heads_caches_divided(rows_are: RowsAre) -> None:
    rows = {devices: {a.name: a.rows for a in build(request(devices))[1].arrays} for devices in (1, 8)}
    assert rows[1]["kv"] == 5 * rows[8]["kv"]  # Five heads, one a device; three devices have padding.
    asked = request(8, rows_are=rows_are)
    verdict = verify(build(asked)[1], limits_of(asked.target))
    assert verdict.proven, str(verdict)


def test_tiles_in_turn_are_refused() -> None:
    with pytest.raises(SpecError, match=r"placement.kv: sequence .* none of the 5 kv heads is on more than one of"):
        build(request(2, PlacementRules(kv="sequence")))


@slow
def test_the_tpu_compiler_takes_it_on_one_device_and_on_two(tmp_path) -> None:
    from schedc.compiler.check import check

    for devices in (1, 2):
        spec = in_format(EXPANDED["latent, odd sizes"], "bf16")
        target = parse_target("tpu7x:2x2x1", devices)
        compiled = compile_model(Request(spec, target, StepShape(2, 64, devices=devices)))
        kernel = tmp_path / f"kernel_{devices}.py"
        kernel.write_text(compiled.kernel.source)
        assert check(compiled, kernel).problems == ()

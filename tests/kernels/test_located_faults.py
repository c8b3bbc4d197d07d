"""A kernel with one wrong operation differs from the reference first in the phase of that operation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schedc.compiler.dump import Compared
from schedc.compiler.interpret import interpret
from schedc.compiler.trial import problems
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Layout, PanelMatrix
from tests.kernels.built import in_format
from tests.kernels.recorded import Fault, addressed, otherwise, recorded_schedule, step_of
from tests.kernels.test_format_kernels import stored
from tests.reference.moe_specs import FEATURES as EXPERTS
from tests.reference.recurrent_specs import FEATURES as RECURRENT
from tests.reference.small_specs import latent_spec, small_spec

pytestmark = pytest.mark.kernel


def layers_of(spec: ModelSpec, repeat: int, last: bool = False) -> ModelSpec:
    """The first or last kind of layer alone, computed in f32."""
    data: dict[str, Any] = spec.model_dump(mode="json")
    block = data["layers"][-1]["pattern"][-1] if last else data["layers"][0]["pattern"][0]
    return in_format(ModelSpec.model_validate(data | {"layers": [{"repeat": repeat, "pattern": [block]}]}), "f32")


DENSE = layers_of(small_spec(mixer={"soft_cap": 0.9}), 2)
LATENT = layers_of(latent_spec(), 1)
EXPANDED = layers_of(latent_spec({"cache": "expanded"}), 1)
ROUTED = layers_of(EXPERTS["gated shared"], 1)
KDA = layers_of(RECURRENT["kda"], 1)
GATED_DELTA = layers_of(RECURRENT["gated delta"], 1)


def together() -> ModelSpec:
    """A layer of every kind."""
    blocks = [spec.model_dump(mode="json")["layers"][0]["pattern"][0] for spec in (DENSE, LATENT, KDA, GATED_DELTA)]
    blocks[1]["feed_forward"] = ROUTED.model_dump(mode="json")["layers"][0]["pattern"][0]["feed_forward"]
    return in_format(small_spec(layers=[{"repeat": 1, "pattern": blocks}]), "f32")


def first_of(found: list[Compared]) -> tuple[str, int | None, str]:
    one = next(one for one in found if one.element is not None)
    return one.phase, one.layer, one.what


def test_a_right_kernel_differs_nowhere():
    found, outcome = step_of(together(), StepShape(2, 32, logits=True), (5, 11), mode="on_wait")
    assert problems(outcome, together()) == []
    assert [one for one in found if one.element is not None] == []
    assert len({one.phase for one in found}) > 40 and {one.layer for one in found} == {None, 0, 1, 2, 3}
    assert 0 < max(one.largest / one.limit for one in found) < 0.1, "limits are not near what sums in f32 differ by"


def test_a_right_kernel_of_quantised_weights_and_an_fp8_cache_differs_nowhere_in_bf16():
    """Experts in a latent space, in nvfp4."""
    plain = stored(EXPERTS["latent"], "nvfp4", "bf16")
    spec = ModelSpec.model_validate(plain.model_dump(mode="json") | {"kv": {"dtype": "fp8"}})
    found, outcome = step_of(spec, StepShape(2, 32, logits=True), (5, 11))
    assert problems(outcome, spec) == []
    assert [one for one in found if one.element is not None] == []
    assert "mlp.winners" in {one.what for one in found} and any("experts" in one.what for one in found)
    limits = {one.what: one.limit for one in found if one.layer == 0}
    assert limits["attn.mixed"] > 2 * limits["mixer.in"], "wide is what has read the cache, though it is smaller"


@pytest.mark.slow
@pytest.mark.parametrize("spec", [EXPERTS["latent"], LATENT], ids=["experts", "latents"])
def test_right_kernels_of_two_devices_differ_nowhere_in_bf16(spec: ModelSpec):
    shape = StepShape(2, 40, logits=True, devices=2)
    small, records = recorded_schedule(stored(spec, "bf16", "bf16"), shape, "tpu7x:2x2x1")
    run = interpret(small, addressed(small.schedule.program, None), "eager", 900, records)
    assert run.problems == () and run.steps >= 3 and {one["device"] for one in run.dump} == {None, 0, 1}


@pytest.mark.parametrize(
    ("spec", "fault", "where"),
    [
        pytest.param(DENSE, otherwise("heads", "split_heads", rotary=0), ("heads", 0, "attn.queries"), id="no rope"),
        pytest.param(LATENT, otherwise("token", "latent_token", norm_eps=0.5), ("token", 0, "attn.latent"), id="mla"),
        pytest.param(
            ROUTED,
            otherwise("expert_activation", "gated", activation="gelu"),
            ("expert_activation", 0, "mlp.experts"),
            id="experts",
        ),
        pytest.param(KDA, otherwise("gates", "delta_gates", bound=4.0), ("gates", 0, "attn.decays"), id="kda"),
        pytest.param(
            GATED_DELTA, otherwise("delta", "short_conv", key_scale=1.0), ("delta", 0, "attn.convolved_q"), id="delta"
        ),
    ],
)
def test_a_wrong_operation_is_found_in_its_phase(spec: ModelSpec, fault: Fault, where: tuple[str, int, str]):
    found, _ = step_of(spec, StepShape(1, 32, logits=True), (6,), fault)
    phase, layer, what = first_of(found)
    assert (phase, layer) == where[:2] and what.startswith(where[2])


OTHERS: tuple[tuple[ModelSpec, Fault, tuple[str, str]], ...] = (
    (DENSE, otherwise("feed_forward_norm", "norm", eps=0.5), ("feed_forward_norm", "feed_forward.in")),
    (DENSE, otherwise("attend", "attend", soft_cap=0.1), ("attend", "attn.mixed")),
    (DENSE, otherwise("mixer_residual", "residual_add", multiplier=0.5), ("mixer_residual", "mixer.stream")),
    (LATENT, otherwise("queries", "latent_queries", rotary=0), ("queries", "attn.q_rope")),
    (EXPANDED, otherwise("heads", "expanded_queries", scale=1.0), ("heads", "attn.queries")),
    (ROUTED, otherwise("route", "route", renormalise=False), ("route", "mlp.weights")),
    (ROUTED, otherwise("shared_gate", "gate_rows", column=1), ("shared_gate", "mlp.gated_shared")),
    (KDA, otherwise("join", "delta_outputs", activation="silu"), ("join", "attn.attended")),
)


def gate_and_up_swapped(layouts: tuple[Layout, ...]) -> tuple[Layout, ...]:
    def swapped(layout: Layout) -> Layout:
        if not (isinstance(layout, PanelMatrix) and layout.name == "w_up"):
            return layout
        return replace(layout, columns=layout.columns[::-1])

    return tuple(map(swapped, layouts))


@pytest.mark.slow
def test_more_wrong_operations_are_found_in_their_phases():
    shape = StepShape(1, 32, logits=True)
    for spec, fault, (phase, what) in OTHERS:
        found, _ = step_of(spec, shape, (6,), fault, mode="on_wait")
        assert first_of(found) == (phase, 0, what)
    found, _ = step_of(DENSE, shape, (6,), layouts=gate_and_up_swapped)
    assert first_of(found) == ("up", 0, "mlp.gate")


@pytest.mark.slow
def test_rows_that_are_tokens_are_compared_too():
    shape = StepShape(3, 32, logits=True, rows_are="tokens")
    found, _ = step_of(together(), shape, (4, 5, 6), active=(True, True, False))
    assert [one for one in found if one.element is not None] == [] and {one.row for one in found} == {0, 1}
    found, _ = step_of(LATENT, shape, (4, 5, 6), otherwise("gather", "gather_queries", scale=1.0))
    assert first_of(found) == ("gather", 0, "attn.queries")


@pytest.mark.slow
def test_devices_are_compared_part_by_part_or_in_sum():
    """All that comes before the wrong operation agrees: heads, columns, experts and sums over two devices."""
    spec, shape = layers_of(EXPERTS["latent"], 1), StepShape(2, 40, logits=True, devices=2)
    small, records = recorded_schedule(spec, shape, "tpu7x:2x2x1")
    fault = otherwise("feed_forward_residual", "residual_add", multiplier=0.5)
    run = interpret(small, addressed(small.schedule.program, fault), "eager", 900, records)
    first = next(one for one in run.dump if one["element"] is not None)
    assert (first["phase"], first["layer"], first["what"]) == ("feed_forward_residual", 0, "feed_forward.stream")
    assert first["device"] == 0
    assert "phase feed_forward_residual of layer 0: feed_forward.stream of row 0 on device 0" in run.problems[0]
    before = run.dump[: run.dump.index(first)]
    assert len({one["phase"] for one in before}) > 12 and {one["device"] for one in before} == {None, 0, 1}

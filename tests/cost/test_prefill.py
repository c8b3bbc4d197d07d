"""The estimate of a prompt, and rates and prices of a step, by hand."""

import pytest

from schedc.cost.prefill import flop_per_token, prefill
from schedc.cost.serving import serving
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.reference.moe_specs import small_moe
from tests.reference.small_specs import small_spec

GQA = {"heads": 4, "kv_heads": 2, "head_dim": 32}


def test_a_token_is_multiplied_by_every_weight_and_by_half_of_the_tokens_before_it() -> None:
    """q, k, v and o of 128 wide heads; gate, up and down; 4 FLOP a head, dimension and token in sight."""
    spec = small_spec(GQA, {"width": 256}, hidden=128, vocab=512)
    layers = spec.num_layers
    weights = 128 * (128 + 64 + 64) + 128 * 128 + 3 * 128 * 256
    assert flop_per_token(spec, 1) == layers * (2 * weights + 4 * 4 * 32)
    assert flop_per_token(spec, 99) == layers * (2 * weights + 4 * 4 * 32 * 50)


def test_a_window_bounds_what_a_token_sees() -> None:
    """Of four tokens with a window of two: one, then two three times."""
    whole, near = (small_spec(GQA | window, {"width": 256}) for window in ({}, {"window": 2}))
    layers = whole.num_layers
    assert flop_per_token(whole, 4) - flop_per_token(near, 4) == pytest.approx(layers * 16 * 32 * (2.5 - 7 / 4))


def test_of_experts_a_token_takes_those_it_chooses() -> None:
    """Two of six: with all six chosen, four more of them."""
    few = small_moe()
    data = few.model_dump(mode="json", exclude_none=True)
    for block in data["layers"][0]["pattern"]:
        block["feed_forward"]["top_k"] = 6
    every = type(few).model_validate(data)
    moe = few.layers[0].pattern[0].feed_forward
    expert = sum(a * b for a, b in (s for s in moe.expert.parameters(few.hidden).values() if len(s) == 2))  # type: ignore[union-attr]
    assert flop_per_token(every, 8) - flop_per_token(few, 8) == pytest.approx(few.num_layers * 2 * 4 * expert)


def test_the_roofline_of_a_prompt() -> None:
    """FLOP over 2 · 2 · 256² a cycle; weights once and caches; nothing is exchanged by one device."""
    spec, target = load_spec("smollm2-135m"), parse_target("tpu7x")
    program = schedule(spec, StepShape(1, 4096), target).program
    long, short = (prefill(spec, program, target, tokens, 1, 4096, 1.9) for tokens in (4096, 16))
    head = 2 * spec.hidden * spec.vocab
    assert long.compute_us == pytest.approx((4096 * flop_per_token(spec, 4096) + head) / (262144 * 1.9) / 1e3)
    assert (long.exchange_us, long.binding, short.binding) == (0.0, "compute", "hbm")
    assert long.time_us == long.compute_us
    kept = sum(a.rows for a in program.arrays if a.role == "state") * 512
    assert long.hbm_us - short.hbm_us == pytest.approx(kept * (4096 - 16) / 4096 / target.cost.hbm_stream_gb_s / 1e3)


def test_devices_share_the_work_and_exchange_what_they_made() -> None:
    spec = small_spec({"heads": 8, "kv_heads": 8, "head_dim": 128}, {"width": 1024}, hidden=1024)

    def estimate(devices: int):
        target = parse_target("tpu7x:2x2x1", devices)
        program = schedule(spec, StepShape(1, 64, devices=devices), target).program
        return prefill(spec, program, target, 64, 1, 64, 1.9)

    one, eight = estimate(1), estimate(8)
    assert one.compute_us == pytest.approx(8 * eight.compute_us)
    assert eight.exchange_us == pytest.approx(2 * spec.num_layers * 2 * 7 / 8 * 64 * 1024 * 2 / 134.0 / 1e3)


def test_rates_and_prices_of_a_step() -> None:
    """4 sequences of a token in 200 + 50 µs: 16,000 a second; 8 chips at 3 $ an hour are 1/150 $ a second."""
    rates = serving(200.0, sequences=4, chips=8, call_us=50.0, price=3.0)
    assert (rates.step_us, rates.tokens_per_s, rates.tokens_per_s_per_sequence) == (250.0, 16000.0, 4000.0)
    assert rates.tokens_per_s_per_chip == 2000.0
    assert rates.dollars_per_million_tokens == pytest.approx(1e6 / 16000 / 150, abs=1e-4)
    drafted = serving(200.0, sequences=1, chips=8, accept=3.5, draft_us=150.0)
    assert (drafted.tokens_per_s, drafted.dollars_per_million_tokens) == (10000.0, None)

"""What a spec says about a model: layers in order, weights, formulas' defaults."""

import pytest

from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.load import load_spec
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import Block, ModelSpec, Run
from schedc.spec.norm import Norm
from schedc.spec.rope import Rope

RMS = Norm(kind="rms", eps=1e-6)
DENSE = Dense(kind="dense", width=32, gated=True, activation="silu")


def attention(**fields) -> Gqa:
    return Gqa(kind="gqa", heads=4, kv_heads=2, head_dim=8, **fields)


def spec(*layers: Run) -> ModelSpec:
    return ModelSpec(
        name="m", hidden=16, vocab=64, max_position=128, embedding={"tied": False}, layers=layers, final_norm=RMS
    )


def test_layers_come_in_order_over_runs_and_patterns():
    local = Block(mixer=attention(window=4), feed_forward=DENSE, norm=RMS)
    full = Block(mixer=attention(), feed_forward=DENSE, norm=RMS)
    found = spec(Run(repeat=2, pattern=(local, full)), Run(repeat=1, pattern=(local,)))
    assert found.num_layers == 5
    assert [(at.layer, at.run, at.trip, at.place) for at in found.iter_layers()] == [
        (0, 0, 0, 0), (1, 0, 0, 1), (2, 0, 1, 0), (3, 0, 1, 1), (4, 1, 0, 0),
    ]  # fmt: skip
    assert [at.block.mixer.window for at in found.iter_layers()] == [4, None, 4, None, 4]


def test_placement_says_which_norms_exist():
    blocks = {
        placement: Block(mixer=attention(), feed_forward=DENSE, norm=RMS, placement=placement)
        for placement in ("pre", "post", "sandwich")
    }
    norms = {placement: [n for n in block.parameters(16) if "norm" in n] for placement, block in blocks.items()}
    assert norms == {
        "pre": ["pre_mixer_norm.weight", "pre_feed_forward_norm.weight"],
        "post": ["post_mixer_norm.weight", "post_feed_forward_norm.weight"],
        "sandwich": [
            "pre_mixer_norm.weight",
            "post_mixer_norm.weight",
            "pre_feed_forward_norm.weight",
            "post_feed_forward_norm.weight",
        ],
    }


def test_weights_are_named_with_their_shapes_in_by_out():
    mixer = attention(bias={"q": True, "o": True}, qk_norm=RMS)
    assert mixer.parameters(16) == {
        "q": (16, 32), "q_bias": (32,), "k": (16, 16), "v": (16, 16), "o": (32, 16), "o_bias": (16,),
        "q_norm_weight": (8,), "k_norm_weight": (8,),
    }  # fmt: skip
    plain = Dense(kind="dense", width=32, gated=False, activation="relu2", bias={"up": True, "down": True})
    assert plain.parameters(16) == {"up": (16, 32), "up_bias": (32,), "down": (32, 16), "down_bias": (16,)}


def test_the_score_scale_is_one_over_the_root_of_head_dim_unless_given():
    assert attention().score_scale == 8**-0.5
    assert attention(scale=0.25).score_scale == 0.25


def test_rope_turns_all_of_a_head_unless_a_part_is_given():
    assert attention().rotary_dim == 0
    assert attention(rope=Rope(theta=1e4)).rotary_dim == 8
    assert attention(rope=Rope(theta=1e4, rotary_dim=4)).rotary_dim == 4


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("smollm2-135m", 134_515_008),
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-8b", 8_190_735_360),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-2-7b", 6_738_415_616),
        ("mistral-nemo", 12_247_782_400),
        ("qwen2.5-7b", 7_615_616_512),
        ("starcoder2-7b", 7_173_923_840),
    ],
)
def test_a_model_has_as_many_parameters_as_its_checkpoint(name, parameters):
    assert sum(load_spec(name).parameter_counts().values()) == parameters

"""A bad spec is refused with all of its faults at once, each with its key path."""

import re
from pathlib import Path

import pytest

from schedc.errors import SpecError, UserError
from schedc.spec.load import list_models, load_spec, parse_spec

GOOD = """\
name: small
hidden: 576
vocab: 49152
max_position: 8192
eos_token_ids: [2]
embedding: {tied: true}
layers:
- repeat: 30
  pattern:
  - mixer:
      kind: gqa
      heads: 9
      kv_heads: 3
      head_dim: 64
      rope: {theta: 100000, scaling: {kind: linear, factor: 2}}
    feed_forward: {kind: dense, width: 1536, gated: true, activation: silu}
    norm: {kind: rms, eps: 1e-5}
final_norm: {kind: rms, eps: 1e-5}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "small.yaml")
    return list(caught.value.problems)


def changed(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_good_spec_loads():
    spec = parse_spec(GOOD, "small.yaml")
    assert spec.num_layers == 30
    assert spec.layers[0].pattern[0].norm.eps == 1e-5


def test_all_faults_are_reported_at_once_with_their_key_paths():
    text = changed(
        ("kv_heads: 3", "kv_heads: 4\n      windw: 128"),
        ("tied: true", "tied: 3"),
        ("[2]", "[x, -1]"),
        ("silu", "swish"),
        ("hidden: 576", "hidden: wide"),
        ("kind: linear", "kind: linaer"),
        ("vocab: 49152\n", ""),
    )
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "small.yaml")
    assert str(caught.value).splitlines()[0] == "small.yaml:"
    assert sorted(caught.value.problems) == [
        "embedding.tied: must be true or false, not 3",
        "eos_token_ids[0]: must be a whole number, not 'x'",
        "eos_token_ids[1]: must be at least 0, not -1",
        "hidden: must be a whole number, not 'wide'",
        "layers[0].pattern[0].feed_forward.activation: "
        "must be 'silu', 'gelu', 'gelu_tanh', 'relu', 'relu2', 'swiglu_clamped' or 'situ', not 'swish'",
        "layers[0].pattern[0].mixer.heads: 9 heads do not divide into 4 kv heads; use a multiple of 4",
        "layers[0].pattern[0].mixer.rope.scaling.kind: must be 'linear', 'llama3', 'longrope' or 'yarn', not 'linaer'",
        "layers[0].pattern[0].mixer.windw: unknown key; nearest: window, kind",
        "vocab: missing",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("kv_heads: 3", "kv_heads: 4",
         "layers[0].pattern[0].mixer.heads: 9 heads do not divide into 4 kv heads; use a multiple of 4"),
        ("theta: 100000", "theta: 100000, rotary_dim: 33",
         "layers[0].pattern[0].mixer.rope.rotary_dim: 33 is odd, and dimensions turn in pairs; use an even number"),
        ("theta: 100000", "theta: 100000, rotary_dim: 80",
         "layers[0].pattern[0].mixer.rope.rotary_dim: 80 is more than head_dim 64; use 64 or less"),
        ("head_dim: 64", "head_dim: 63",
         "layers[0].pattern[0].mixer.head_dim: rope rotates pairs, and 63 is odd; set an even rope.rotary_dim"),
        ("kind: linear, factor: 2", "kind: linear, factor: 0.5",
         "layers[0].pattern[0].mixer.rope.scaling.factor: must be at least 1, not 0.5"),
        ("kind: linear, factor: 2", "kind: yarn, factor: 2, original_max_position: 64, mscale: 1",
         "layers[0].pattern[0].mixer.rope.scaling.mscale: has no effect without mscale_all_dim; give both or neither"),
        ("kind: linear, factor: 2", "factor: 2", "layers[0].pattern[0].mixer.rope.scaling.kind: missing"),
        ("gated: true", "gated: false, bias: {gate: true}",
         "layers[0].pattern[0].feed_forward.bias.gate: a plain feed-forward has no gate; "
         "use gated: true, or bias.gate: false"),
        ("  norm: {kind: rms", "  norm: {bias: true, kind: rms",
         "layers[0].pattern[0].norm.bias: an rms norm has no bias; use kind: layer, or bias: false"),
        ("kind: gqa", "kind: mia",
         "layers[0].pattern[0].mixer.kind: must be 'gqa', 'mla', 'kda' or 'gated_delta', not 'mia'"),
        ("repeat: 30", "repeat: 0", "layers[0].repeat: must be more than 0, not 0"),
        ("repeat: 30", "repeat: yes", "layers[0].repeat: must be a whole number, not true"),
        ("[2]", "[49152]", "eos_token_ids[0]: 49152 is not a token of a vocabulary of 49152"),
        ("embedding: {tied: true}", "embedding: tied", "embedding: must be a mapping of keys, not 'tied'"),
        ("name: small", "name: small\nkv: {layout: paged}",
         "kv.page_tokens: missing: a page of a paged cache has so many tokens, as in page_tokens: 64"),
        ("name: small", "name: small\nkv: {page_tokens: 64}",
         "kv.page_tokens: belongs to the layout paged; leave it out, or use layout: paged"),
        ("head_dim: 64", "head_dim: 64\n      qk_norm_over: heads",
         "layers[0].pattern[0].mixer.qk_norm_over: there is no qk_norm of which it says anything; "
         "set qk_norm, or leave it out"),
        ("name: small", "name: small\nquantization: {router: int8}",
         "quantization.router: must be 'bf16' or 'f32', not 'int8'"),
        ("name: small", "name: small\nname: twice", "line 2, column 1: duplicate key 'name'"),
        ("[2]", "[2", "line 6, column 10: expected ',' or ']', but got ':'"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_remedy(old, new, problem):
    assert problems(changed((old, new))) == [problem]


EXPERTS = "{kind: moe, experts: 8, top_k: 2, router: {score: softmax, renormalise: true}, width: 64, activation: silu}"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("top_k: 2", "top_k: 9", "top_k: 9 of 8 experts cannot be chosen; use 8 or less"),
        ("renormalise: true", "renormalise: true, groups: 3",
         "router.groups: 8 experts do not divide into 3 groups; use a divisor"),
        ("top_k: 2, router: {score", "top_k: 3, router: {groups: 4, score",
         "top_k: 3 experts cannot be chosen from 1 of 4 groups of 2; use 2 or less, or keep more groups"),
        ("activation: silu", "activation: swiglu_clamped, limit: 7, gated: false",
         "activation: swiglu_clamped works on a gate; use gated: true"),
        ("activation: silu", "activation: swiglu_clamped",
         "limit: missing: swiglu_clamped clamps at it, as in limit: 7.0"),
        ("activation: silu", "activation: silu, limit: 7",
         "limit: belongs to the activation swiglu_clamped, not to silu; leave it out"),
    ],
)  # fmt: skip
def test_a_fault_of_experts_is_named_with_its_remedy(old, new, problem):
    assert old in EXPERTS
    text = changed(("{kind: dense, width: 1536, gated: true, activation: silu}", EXPERTS.replace(old, new)))
    assert problems(text) == [f"layers[0].pattern[0].feed_forward.{problem}"]


LATENT = """kind: mla
      heads: 2
      kv_rank: 64
      nope_dim: 32
      rope_dim: 16
      value_dim: 32
      kv_norm: {kind: rms, eps: 1e-5}"""


def test_longrope_of_latent_attention_has_a_factor_for_every_pair_of_the_shared_key():
    factors = "kind: longrope, factor: 2, original_max_position: 64, short_factor: [1, 1], long_factor: [2, 2]"
    text = changed(
        ("kind: gqa\n      heads: 9\n      kv_heads: 3\n      head_dim: 64", LATENT),
        ("kind: linear, factor: 2", factors),
    )
    assert problems(text) == ["layers[0].pattern[0].mixer.rope.scaling.short_factor: 2 numbers for 8 pairs; one a pair"]


def test_an_empty_file_is_not_a_spec():
    assert problems("") == ["must be a mapping of keys, not null"]


def test_an_unknown_model_is_refused_with_the_nearest_names():
    with pytest.raises(
        UserError,
        match=re.escape(
            "unknown model 'smolm2-135m'; nearest: smollm2-135m, olmo-2-7b; "
            "a spec of your own is given as a file, ./smolm2-135m.yaml"
        ),
    ) as caught:
        load_spec("smolm2-135m")
    assert caught.value.exit_code == 2


def test_a_missing_file_is_refused_by_its_path(tmp_path: Path):
    path = tmp_path / "none.yaml"
    with pytest.raises(UserError, match=re.escape(f"{path}: cannot be read: No such file or directory")):
        load_spec(path)


def test_a_spec_of_ones_own_is_read_from_its_path(tmp_path: Path):
    path = tmp_path / "mine.yml"
    path.write_text(GOOD)
    assert load_spec(str(path)).name == "small"


def test_every_model_that_comes_with_schedc_loads_under_its_own_name():
    assert list_models() == sorted(list_models())
    assert [load_spec(name).name for name in list_models()] == list_models()

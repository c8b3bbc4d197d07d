"""Writing a spec and reading it again gives the same spec; defaults are left out."""

from hypothesis import given, settings
from hypothesis import strategies as st

from schedc.spec.dump import dump_spec
from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.load import load_spec, parse_spec
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import Block, ModelSpec, Run
from schedc.spec.norm import Norm
from schedc.spec.rope import LinearScaling, Llama3Scaling, Rope, YarnScaling

positive = st.floats(1e-7, 1e7)
norms = st.one_of(
    st.builds(Norm, kind=st.just("rms"), eps=positive, unit_offset=st.booleans()),
    st.builds(Norm, kind=st.just("layer"), eps=positive, bias=st.booleans()),
)
scalings = st.one_of(
    st.none(),
    st.builds(LinearScaling, kind=st.just("linear"), factor=st.floats(1, 64)),
    st.builds(
        Llama3Scaling, kind=st.just("llama3"), factor=st.floats(1, 64), low_freq_factor=st.floats(0.5, 1),
        high_freq_factor=st.floats(2, 8), original_max_position=st.integers(1, 9999),
    ),
    st.builds(
        YarnScaling, kind=st.just("yarn"), factor=st.floats(1, 64), original_max_position=st.integers(1, 9999),
        truncate=st.booleans(), attention_factor=st.none() | positive,
    ),
)  # fmt: skip
ropes = st.builds(
    Rope, theta=st.floats(2, 1e7), pairs=st.sampled_from(["half", "adjacent"]),
    rotary_dim=st.sampled_from([None, 2, 32]), scaling=scalings,
)  # fmt: skip
mixers = st.builds(
    Gqa, kind=st.just("gqa"), heads=st.sampled_from([6, 12]), kv_heads=st.sampled_from([1, 2, 3, 6]),
    head_dim=st.sampled_from([32, 64, 80]), scale=st.none() | positive, rope=st.none() | ropes,
    qk_norm=st.none() | norms, window=st.none() | st.integers(1, 4096), soft_cap=st.none() | positive,
    bias=st.fixed_dictionaries({}, optional=dict.fromkeys("qkvo", st.booleans())),
)  # fmt: skip
feed_forwards = st.builds(
    Dense, kind=st.just("dense"), width=st.integers(1, 9999), gated=st.booleans(),
    activation=st.sampled_from(["silu", "gelu", "gelu_tanh", "relu", "relu2"]),
    bias=st.fixed_dictionaries({}, optional={"up": st.booleans(), "down": st.booleans()}),
)  # fmt: skip
blocks = st.builds(
    Block, mixer=mixers, feed_forward=feed_forwards, norm=norms,
    placement=st.sampled_from(["pre", "post", "sandwich"]),
)  # fmt: skip
runs = st.builds(Run, repeat=st.integers(1, 99), pattern=st.lists(blocks, min_size=1, max_size=2).map(tuple))
specs = st.builds(
    ModelSpec, name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,7}", fullmatch=True),
    hidden=st.integers(1, 9999), vocab=st.just(1000),
    max_position=st.integers(1, 9999), eos_token_ids=st.lists(st.integers(0, 999), max_size=2).map(tuple),
    embedding=st.fixed_dictionaries({"tied": st.booleans()}, optional={"multiplier": positive}),
    layers=st.lists(runs, min_size=1, max_size=2).map(tuple), final_norm=norms,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(specs)
def test_a_spec_survives_dump_and_parse(spec):
    text = dump_spec(spec)
    assert parse_spec(text, "dumped") == spec
    assert dump_spec(parse_spec(text, "dumped")) == text


def test_defaults_are_not_written():
    assert dump_spec(load_spec("smollm2-135m")) == (
        """\
name: smollm2-135m
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
      rope: {theta: 100000.0}
    feed_forward: {kind: dense, width: 1536, gated: true, activation: silu}
    norm: {kind: rms, eps: 1.0e-05}
final_norm: {kind: rms, eps: 1.0e-05}
"""
    )

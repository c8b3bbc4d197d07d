"""What a kernel cannot express yet is refused by name, all at once."""

import pytest

from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
from schedc.spec.model import ModelSpec
from tests.reference.small_specs import small_spec


def test_unsupported_parts_and_sizes_are_named_together() -> None:
    spec = small_spec(embedding={"tied": False}, head={"bias": True})
    with pytest.raises(SpecError) as error:
        StepLowering(spec, StepShape(17, 65))
    assert str(error.value).splitlines() == [
        "small:",
        "  head.bias: a bias of the head is not supported by the kernel yet",
        "  rows: 17 is not between 1 and 16",
        "  context: 65 is not between 1 and max_position 64",
    ]


def test_layers_and_final_norms_without_any_vector_are_refused() -> None:
    bare = {"kind": "rms", "eps": 1e-5, "weight": False}
    with pytest.raises(SpecError) as error:
        StepLowering(small_spec(block={"norm": bare}), StepShape(1, 16))
    assert str(error.value).splitlines()[1:] == [
        "  final_norm.weight: a final norm without weight is not supported by the kernel yet",
        "  layers[0].pattern[0].norm.weight: a layer without any vector (norms, biases) is not supported by the kernel "
        "yet",
    ]


def longrope(sequences: str) -> ModelSpec:
    factors = {"short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 5.0]}
    scaling = {"kind": "longrope", "factor": 4.0, "original_max_position": 16, "sequences": sequences, **factors}
    return small_spec(mixer={"rope": {"theta": 100.0, "scaling": scaling}})


def test_a_context_in_which_longrope_would_switch_is_refused() -> None:
    StepLowering(longrope("short"), StepShape(1, 16))
    with pytest.raises(SpecError, match="context: 17 is more than 16, where longrope turns from short to long factors"):
        StepLowering(longrope("short"), StepShape(1, 17))
    StepLowering(longrope("long"), StepShape(1, 17))
    with pytest.raises(SpecError, match="context: 16 holds no sequence of more than 16 tokens"):
        StepLowering(longrope("long"), StepShape(1, 16))


def test_norms_over_all_heads_are_refused_where_devices_would_count_some_heads_more_often() -> None:
    def joint(heads: int, kv_heads: int) -> ModelSpec:
        norm = {"qk_norm": {"kind": "rms", "eps": 1e-5}, "qk_norm_over": "heads"}
        return small_spec(mixer={"heads": heads, "kv_heads": kv_heads, **norm})

    StepLowering(joint(8, 2), StepShape(1, 16, devices=4))
    with pytest.raises(SpecError, match=r"qk_norm_over: the 2 kv heads are not on equally many of 5 devices each"):
        StepLowering(joint(4, 2), StepShape(1, 16, devices=5))

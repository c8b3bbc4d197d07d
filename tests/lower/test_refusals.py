"""What a kernel cannot express yet is refused by name, all at once."""

import pytest

from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
from tests.reference.small_specs import small_spec


def test_unsupported_parts_and_sizes_are_named_together() -> None:
    layer_norm = {"kind": "layer", "eps": 1e-5}
    spec = small_spec(mixer={"qk_norm": layer_norm}, embedding={"tied": False}, head={"bias": True})
    with pytest.raises(SpecError) as error:
        StepLowering(spec, StepShape(17, 65))
    assert str(error.value).splitlines() == [
        "small:",
        "  head.bias: a bias of the head is not supported by the kernel yet",
        "  layers[0].pattern[0].mixer.qk_norm.kind: layer is not supported by the kernel yet, rms is",
        "  rows: 17 is not between 1 and 16",
        "  context: 65 is not between 1 and max_position 64",
    ]

"""What a kernel cannot express yet is refused by name, all at once."""

import pytest

from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
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

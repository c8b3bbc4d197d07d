"""The stored logits are what `transformers` says now. Needs the extra `conformance`."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.conformance.families import FAMILIES, Family, relative_difference
from tests.conformance.live import logits_of, tensors_of


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_stored_logits_are_those_of_transformers(family: Family) -> None:
    assert family.tensors() == tensors_of(family)
    for stored, live in zip(family.logits(), logits_of(family, family.tensors()), strict=True):
        assert np.isfinite(stored).all()
        assert relative_difference(stored, live) <= 1e-5

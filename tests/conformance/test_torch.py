"""The stored logits are what `transformers` says now. Needs the extra `conformance`."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from schedc.spec.importers.import_config import import_config
from tests.conformance.families import FAMILIES, Family, relative_difference
from tests.conformance.live import config_of, logits_of, tensors_of


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_stored_logits_are_those_of_transformers(family: Family) -> None:
    assert family.tensors() == tensors_of(family)
    for stored, live in zip(family.logits(), logits_of(family, family.tensors()), strict=True):
        assert np.isfinite(stored).all()
        assert relative_difference(stored, live) <= 1e-5


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_config_that_transformers_writes_is_the_same_model(family: Family) -> None:
    """It has all keys, those with their default value too, and in the form of the newest version."""
    assert import_config(config_of(family), family.name) == import_config(dict(family.config), family.name)

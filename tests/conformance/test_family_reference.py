"""schedc's reference, with a family's checkpoint and config, says what its `transformers` class says: all positions."""

import json
from pathlib import Path

import numpy as np
import pytest

from schedc.reference.reference import Reference
from tests.conformance.families import FAMILIES, STEPS, Family, relative_difference
from tests.conformance.schedc_side import opened, reference_logits
from tests.kernels.built import in_format

AGREES = 1e-4
NEAR_TIES = {"muse_spark": 1e-3}
"""Its random router scores experts nearly alike, and the norm of their outputs carries a difference on."""


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_reference_agrees_with_transformers(family: Family, tmp_path: Path) -> None:
    spec, source = opened(family, tmp_path)
    found = reference_logits(Reference(in_format(spec, "f32"), source), family)
    for row, (logits, expected) in enumerate(zip(found, family.logits(), strict=True)):
        assert logits.shape == (family.prompts[row] + STEPS, spec.vocab)
        assert relative_difference(logits, expected) <= NEAR_TIES.get(family.name, AGREES), f"sequence {row}"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_two_layers_of_every_kind(family: Family, tmp_path: Path) -> None:
    spec, _ = opened(family, tmp_path)
    kinds = [at.block.model_dump_json() for at in spec.iter_layers()]
    assert all(kinds.count(kind) >= 2 for kind in kinds)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_logits_of_a_family_tell_positions_apart(family: Family) -> None:
    """Weights too small or too large would make every answer the same, and a test of them vacuous."""
    for logits in family.logits():
        apart = [relative_difference(logits[1:], logits[:-1]), np.ptp(logits, axis=0).mean()]
        assert min(apart) > 0.2


def test_configs_are_as_hugging_face_writes_them() -> None:
    for family in FAMILIES:
        assert family.config_file.read_text() == json.dumps(family.config, indent=2) + "\n"

"""The generated kernel, behind a prefilled prompt, says at every decode step what the `transformers` class says."""

from pathlib import Path

import jax.numpy as jnp
import pytest

from schedc.reference.reference import Reference
from tests.conformance.families import FAMILIES, STEPS, Family, relative_difference
from tests.conformance.schedc_side import decode_steps, kernel_logits, opened, reference_logits
from tests.kernels.built import in_format

pytestmark = pytest.mark.kernel

AGREES = 2e-3


def cases() -> list:
    """Two steps of every family, of which one family is fast enough for all runs, and all steps of every family."""
    found = []
    for family in FAMILIES:
        few = () if family.name == "llama" else (pytest.mark.slow,)
        found.append(pytest.param(family, 2, marks=few, id=f"{family.name}, 2 steps"))
        found.append(pytest.param(family, STEPS, marks=pytest.mark.long, id=f"{family.name}, {STEPS} steps"))
    return found


@pytest.mark.parametrize(("family", "steps"), cases())
def test_the_kernel_agrees_with_transformers(family: Family, steps: int, tmp_path: Path) -> None:
    spec, source = opened(family, tmp_path)
    found = kernel_logits(family, in_format(spec, "f32"), source, steps)
    of_steps = zip(found, decode_steps(family.logits(), steps), strict=True)
    differences = [relative_difference(logits, expected) for logits, expected in of_steps]
    print(f"{family.name}, f32: {steps} steps, {max(differences):.1e} of {AGREES:.1e}")
    assert [step for step, difference in enumerate(differences) if not difference <= AGREES] == []


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_bf16_kernel_differs_by_no_more_than_rounding(family: Family, tmp_path: Path) -> None:
    """Rounded weights, dot inputs and caches move the reference away from torch; the kernel at most twice as far."""
    spec, source = opened(family, tmp_path)
    expected = decode_steps(family.logits())
    rounded = decode_steps(reference_logits(Reference(in_format(spec, "f32"), source, jnp.bfloat16), family))
    bound = AGREES + 2 * relative_difference(rounded, expected)
    difference = relative_difference(kernel_logits(family, in_format(spec, "bf16"), source), expected)
    print(f"{family.name}, bf16: {STEPS} steps, {difference:.1e} of {bound:.1e}")
    assert difference <= bound

"""The generated kernel, behind a prefilled prompt, says at every decode step what the `transformers` class says."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from schedc.reference.reference import Reference
from schedc.spec.feed_forwards.moe import Moe
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
    """Rounded weights, dot inputs and caches move the reference away from torch; the kernel at most twice as far, at
    the median of all steps and rows and, without experts, everywhere: where two experts score nearly the same, rounding
    may choose the other one, for that step and what is cached of it."""
    spec, source = opened(family, tmp_path)
    expected = decode_steps(family.logits())
    reference = decode_steps(reference_logits(Reference(in_format(spec, "f32"), source, jnp.bfloat16), family))
    kernel = kernel_logits(family, in_format(spec, "bf16"), source)
    (usual, most), (allowed, bound) = _median_and_most(kernel, expected), _median_and_most(reference, expected)
    print(f"{family.name}, bf16: median {usual:.1e} beside {allowed:.1e}, most {most:.1e} beside {bound:.1e}")
    assert usual <= AGREES + 2 * allowed
    assert most <= AGREES + 2 * bound or any(isinstance(at.block.feed_forward, Moe) for at in spec.iter_layers())


def _median_and_most(logits: Any, expected: Any) -> tuple[float, float]:
    """Of the largest differences by step and row of f32[steps, rows, vocab], over the largest expected logit there."""
    expected = np.asarray(expected)
    apart = np.abs(np.asarray(logits) - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
    return float(np.median(apart)), float(apart.max())

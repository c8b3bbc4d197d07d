"""Frequencies against the published formulas, written here pair by pair and independently."""

import math

import numpy as np
import pytest

from schedc.spec.rope import LinearScaling, Llama3Scaling, LongRopeScaling, Rope, YarnScaling, inverse_frequencies


def plain(theta: float, dim: int) -> list[float]:
    return [1.0 / theta ** (2 * i / dim) for i in range(dim // 2)]


def test_without_scaling_pair_i_turns_by_theta_to_the_minus_2i_over_d():
    found, factor = inverse_frequencies(Rope(theta=10_000.0), 64)
    np.testing.assert_allclose(found, plain(10_000.0, 64), rtol=1e-14)
    assert found.dtype == np.float64
    assert factor == 1.0


def test_linear_scaling_divides_every_frequency():
    found, factor = inverse_frequencies(Rope(theta=1e6, scaling=LinearScaling(kind="linear", factor=8.0)), 256)
    np.testing.assert_allclose(found, [f / 8 for f in plain(1e6, 256)], rtol=1e-14)
    assert factor == 1.0


def test_llama3_scaling_follows_wavelengths():
    """As in Meta's reference: by wavelength, long ones divided, short ones kept, a blend between."""
    expected = []
    for f in plain(500_000.0, 128):
        wavelength = 2 * math.pi / f
        if wavelength < 8192 / 4.0:
            expected.append(f)
        elif wavelength > 8192 / 1.0:
            expected.append(f / 8.0)
        else:
            smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0)
            expected.append((1 - smooth) * f / 8.0 + smooth * f)
    scaling = Llama3Scaling(
        kind="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position=8192
    )
    found, factor = inverse_frequencies(Rope(theta=500_000.0, scaling=scaling), 128)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert factor == 1.0
    assert sum(f == e for f, e in zip(expected, plain(500_000.0, 128), strict=True)) == 29


@pytest.mark.parametrize(("sequences", "factors"), [("short", [1.0, 1.1]), ("long", [2.0, 9.0])])
def test_longrope_divides_each_pair_by_the_factor_of_its_sequences(sequences: str, factors: list[float]):
    scaling = LongRopeScaling(
        kind="longrope",
        factor=32.0,
        original_max_position=4096,
        short_factor=(1.0, 1.1),
        long_factor=(2.0, 9.0),
        sequences=sequences,
    )
    found, factor = inverse_frequencies(Rope(theta=10_000.0, scaling=scaling), 4)
    np.testing.assert_allclose(found, [f / by for f, by in zip(plain(10_000.0, 4), factors, strict=True)], rtol=1e-14)
    assert factor == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)))  # 1.190238 for Phi-3.5


def yarn_by_hand(theta, dim, factor, original, fast=32.0, slow=1.0, truncate=True):
    low = dim * math.log(original / (fast * 2 * math.pi)) / (2 * math.log(theta))
    high = dim * math.log(original / (slow * 2 * math.pi)) / (2 * math.log(theta))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    frequencies = []
    for i, f in enumerate(plain(theta, dim)):
        ramp = min(max((i - low) / (high - low), 0.0), 1.0)
        frequencies.append(f / factor * ramp + f * (1 - ramp))
    return frequencies


@pytest.mark.parametrize("truncate", [True, False])
def test_yarn_ramps_between_fast_and_slow_pairs(truncate):
    scaling = YarnScaling(kind="yarn", factor=32.0, original_max_position=4096, truncate=truncate)
    found, factor = inverse_frequencies(Rope(theta=150_000.0, scaling=scaling), 64)
    np.testing.assert_allclose(found, yarn_by_hand(150_000.0, 64, 32.0, 4096, truncate=truncate), rtol=1e-13)
    assert factor == pytest.approx(0.1 * math.log(32.0) + 1.0, rel=1e-15)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"attention_factor": 1.25}, 1.25),
        ({"mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
        ({"mscale": 0.707, "mscale_all_dim": 1.0}, (0.0707 * math.log(40) + 1) / (0.1 * math.log(40) + 1)),
        ({}, 0.1 * math.log(40) + 1),
    ],
)
def test_yarn_attention_factor(given, expected):
    scaling = YarnScaling(kind="yarn", factor=40.0, original_max_position=4096, **given)
    _, factor = inverse_frequencies(Rope(theta=10_000.0, scaling=scaling), 64)
    assert factor == pytest.approx(expected, rel=1e-15)


def test_the_rotated_dimensions_set_the_frequencies_of_a_partial_rope():
    found, _ = inverse_frequencies(Rope(theta=1e7, rotary_dim=64), 64)
    np.testing.assert_allclose(found, plain(1e7, 64), rtol=1e-14)

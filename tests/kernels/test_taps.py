"""The residual stream after chosen layers, as a draft model reads it, against the reference."""

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.errors import SpecError
from schedc.lower.graph import StepShape, shape_from_dict, shape_to_dict
from schedc.reference.reference import Reference
from schedc.run.decoder import Decoder
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.layout import on_device
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles
from tests.kernels.test_block_attention import in_blocks
from tests.reference.small_specs import small_spec, two_runs

pytestmark = pytest.mark.kernel

TOKENS = np.array([[3, 41, 7], [22, 0, 13]])
SPECS = {
    "one loop": (in_format(small_spec(), "f32"), (0, 1, 2)),
    "several runs": (in_format(two_runs(), "f32"), (0, 2, 4)),
    "blocks over the ends of runs": (in_blocks(4, (1, 3, 1), period=2), (1, 3, 4, 9)),
}


def decoder(spec: ModelSpec, shape: StepShape, mode: Mode) -> Decoder:
    compat.reset_interpreter()
    built, source = build_kernel(spec, shape, small_tiles("ring")), for_kernel(RandomWeights(spec, 0), spec)
    arrays = [
        pack_arrays([on_device(layout, device) for layout in built.schedule.layouts], source)
        for device in range(shape.devices)
    ]
    settings = compat.interpret_params(mode)
    return Decoder(built.module, spec, arrays.__getitem__, shape, built.schedule.plan.kv_tokens, settings)


def stepped(made: Decoder) -> np.ndarray:
    """f32[taps, rows, tokens, hidden]: all of TOKENS, one after the other."""
    steps = [made.step(tokens, [at] * len(TOKENS))["hidden"] for at, tokens in enumerate(TOKENS.T)]
    return np.stack(steps, axis=2)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("blocks over the ends of runs", "on_wait"),
        pytest.param("blocks over the ends of runs", "eager", marks=pytest.mark.slow),
        pytest.param("several runs", "eager", marks=pytest.mark.slow),
        pytest.param("one loop", "on_wait", marks=pytest.mark.slow),
    ],
)
def test_a_tap_is_the_stream_that_its_layer_leaves(name: str, mode: Mode) -> None:
    spec, taps = SPECS[name]
    got = stepped(decoder(spec, StepShape(2, 50, taps=taps), mode))
    assert not compat.races_found()
    reference = Reference(spec, RandomWeights(spec, 0))
    expected = np.stack([reference.layer_outputs(row)[list(taps)] for row in TOKENS], axis=1)
    assert np.abs(got - expected).max() < 1e-4 * np.abs(expected).max()


def test_several_steps_in_a_call_have_the_taps_of_each() -> None:
    spec, taps = SPECS["one loop"]
    shape = StepShape(2, 50, taps=taps[1:])
    one, several = decoder(spec, shape, "eager"), decoder(spec, shape, "eager")
    first = one.step(TOKENS[:, 0], (0, 0))
    second = one.step(first["ids"], (1, 1))
    both = several.steps(2, TOKENS[:, 0], (0, 0))["hidden"]
    assert np.array_equal(both, np.stack([first["hidden"], second["hidden"]]))


def test_without_taps_nothing_is_written() -> None:
    spec, _ = SPECS["one loop"]
    program = build_kernel(spec, StepShape(1, 50), small_tiles("ring")).program
    assert "hidden" not in {array.name for array in program.arrays}


@pytest.mark.parametrize(
    ("taps", "message"),
    [
        ((1, 3), "taps: 3 is not a layer, they are 0 to 2"),
        ((2, 1), "taps: 1 comes after 2; give every layer once, in the order of the model"),
        ((1, 1), "taps: 1 comes after 1; give every layer once, in the order of the model"),
    ],
)
def test_taps_that_are_no_layers_in_order_are_refused(taps: tuple[int, ...], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build_kernel(SPECS["one loop"][0], StepShape(1, 50, taps=taps), small_tiles("ring"))


def test_a_manifest_gives_the_taps_back() -> None:
    shape = StepShape(1, 50, taps=(0, 2))
    assert shape_from_dict(shape_to_dict(shape)) == shape

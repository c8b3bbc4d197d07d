"""The scaled-down Kimi K3 verifies eight drafted tokens a step: whatever number of them is right, what follows is what
the float64 numpy step says of the tokens that were accepted, as if they had been decoded one by one."""

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.lower.graph import StepShape
from schedc.run.decoder import Decoder
from schedc.weights.head_order import for_kernel
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import build_kernel, small_tiles
from tests.models.kimi_k3_mini import EXACT, judge, mini

pytestmark = [pytest.mark.kernel, pytest.mark.long]

ROWS, SEED, RELATIVE = 8, 5, 1e-4
TAPS = (0, 5, 12)
RIGHT = (8, 3, 0, 5, 1, 4, 7, 0, 2, 6, 8)
"""Of the eight guesses of a step; none: the next step has other tokens in their place."""


def test_zero_to_eight_right_guesses_are_followed_by_what_plain_decoding_says() -> None:
    spec = mini(**EXACT)
    source = RandomWeights(spec, SEED)
    true = np.random.default_rng(SEED).integers(0, spec.vocab, sum(RIGHT) + ROWS)
    model = judge(spec, source)
    answers = [model.step(int(token)) for token in true]
    logits, hidden = np.stack([a[0] for a in answers]), np.stack([[a[1][layer] for layer in TAPS] for a in answers])

    shape = StepShape(ROWS, 64, logits=True, rows_are="tokens", taps=TAPS)
    built = build_kernel(spec, shape, small_tiles("ring"))
    arrays = pack_arrays(built.schedule.layouts, for_kernel(source, spec))
    settings = compat.interpret_params("on_wait", detect_races=True)
    compat.reset_interpreter()
    decoder = Decoder(built.module, spec, lambda device: arrays, shape, built.schedule.plan.kv_tokens, settings)

    position, accepted = 0, None
    for right in RIGHT:
        tokens = true[position : position + ROWS].copy()
        tokens[right:] = (tokens[right:] + 7) % spec.vocab
        found = decoder.step(tokens.tolist(), [position], None, accepted)
        known = slice(position, position + right)
        assert error_of(found["logits"][:right], logits[known]) < RELATIVE
        assert error_of(found["hidden"].transpose(1, 0, 2)[:right], hidden[known]) < RELATIVE
        assert (found["ids"][:right] == logits[known].argmax(axis=1)).all()
        position, accepted = position + right, right
    assert position == sum(RIGHT)
    assert not compat.races_found()


def error_of(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest, of the largest there is; 0 where nothing is compared."""
    return float(np.abs(got - expected).max() / np.abs(expected).max()) if len(expected) else 0.0

"""Rows of one step do not touch each other: each decodes as if it were alone, whoever is inactive."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.load import load_kernel
from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import StepShape
from schedc.run.decoder import Decoder
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from schedc.weights.head_order import for_kernel
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.reference.small_specs import small_spec

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

CONTEXT = 50
POSITIONS = [0, 49, 17, 1, 16, 31, 32, 33, 15, 48, 7, 8, 25, 40, 2, 47]
INACTIVE = {2, 5, 11}


@cache
def spec() -> ModelSpec:
    return ModelSpec.model_validate(
        small_spec(hidden=72).model_dump(mode="json") | {"quantization": {"weights": "f32"}, "kv": {"dtype": "f32"}}
    )


def decoder(rows: int, folder: Path) -> Decoder:
    request = Request(spec(), parse_target("tpu7x"), StepShape(rows, CONTEXT, logits=True))
    compiled = compile_model(request)
    path = folder / f"kernel_{rows}.py"
    path.write_text(compiled.kernel.source)
    weights = pack_arrays(compiled.schedule.layouts, for_kernel(RandomWeights(spec(), 0), spec()))
    interpret = compat.interpret_params("on_wait", detect_races=False)
    return Decoder(load_kernel(path), spec(), weights, rows, CONTEXT, compiled.schedule.plan.kv_tokens, interpret)


def past(row: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Keys and values of a sequence up to its position, the same for the same row whatever the batch."""
    random = np.random.default_rng(row)
    shape = (POSITIONS[row], spec().layers[0].pattern[0].mixer.kv_heads, spec().layers[0].pattern[0].mixer.head_dim)
    return [tuple(random.standard_normal(shape, np.float32) for _ in range(2)) for _ in range(spec().num_layers)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[np.ndarray]:
    single = decoder(1, tmp_path_factory.mktemp("alone"))
    logits = []
    for row, position in enumerate(POSITIONS):
        single.fill(0, past(row))
        logits.append(single.step([row + 3], [position])["logits"][0])
    return logits


@pytest.mark.parametrize("rows", [3, 8, 16])
def test_rows_together_decode_as_each_alone(rows: int, alone: list[np.ndarray], tmp_path: Path) -> None:
    together = decoder(rows, tmp_path)
    for row in range(rows):
        together.fill(row, past(row))
    active = [row not in INACTIVE for row in range(rows)]
    before = {name: np.array(value) for name, value in together.state.items()}
    result = together.step([row + 3 for row in range(rows)], POSITIONS[:rows], active)
    cache = next(iter(together.caches.values()))
    for row in range(rows):
        if active[row]:
            assert result["ids"][row] == alone[row].argmax()
            assert np.abs(result["logits"][row] - alone[row]).max() < 1e-5
        else:
            assert result["ids"][row] == -1
            for name, value in before.items():
                for layer in range(spec().num_layers):
                    own = slice(cache.first_row(layer, row), cache.first_row(layer, row) + cache.sequence_rows)
                    assert (np.asarray(together.state[name])[own] == value[own]).all()

"""SmolLM2-135M from its published weights: the generated kernel against tokens and logits of other implementations.

Every kernel decodes the three prompts as three rows at once, teacher-forced over 16 positions each: the last
token of the prompt and the first 15 of the answer. The positions before are prefilled by the reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.load import load_kernel
from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import StepShape
from schedc.reference.reference import Reference
from schedc.run.decoder import Decoder
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from schedc.weights.fetch import fetch_weights
from schedc.weights.head_order import for_kernel
from schedc.weights.open import open_weights
from schedc.weights.pack import pack_arrays
from schedc.weights.source import WeightSource
from tests.reference.numpy_decoder import KERNEL, NumpyDecoder

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

PROMPTS = json.loads((Path(__file__).parents[1] / "reference" / "smollm2_reference.json").read_text())["prompts"]
ANSWER = 16
CONTEXT = 64


def in_format(dtype: str) -> ModelSpec:
    spec = load_spec("smollm2-135m").model_dump(mode="json")
    return ModelSpec.model_validate(spec | {"quantization": {"weights": dtype}, "kv": {"dtype": dtype}})


@pytest.fixture(scope="module")
def weights() -> WeightSource:
    return open_weights(fetch_weights("smollm2-135m"), load_spec("smollm2-135m"))


@pytest.fixture(scope="module")
def exact(weights: WeightSource) -> list[np.ndarray]:
    """f32[16, vocab] of each prompt by the f32 reference: what follows each of the 16 positions."""
    reference = Reference(load_spec("smollm2-135m"), weights)
    return [reference.prefill(p["ids_hf"] + p["greedy_hf"][: ANSWER - 1])[0][len(p["ids_hf"]) - 1 :] for p in PROMPTS]


@dataclass(frozen=True)
class Decoded:
    ids: np.ndarray
    logits: np.ndarray
    """[prompt, position] and [prompt, position, vocab]."""


def decode(dtype: str, weights: WeightSource, folder: Path) -> Decoded:
    spec = in_format(dtype)
    shape = StepShape(len(PROMPTS), CONTEXT, logits=True)
    compiled = compile_model(Request(spec, parse_target("tpu7x"), shape))
    path = folder / "kernel.py"
    path.write_text(compiled.kernel.source)
    packed = pack_arrays(compiled.schedule.layouts, for_kernel(weights, spec))
    decoder = Decoder(
        load_kernel(path),
        spec,
        lambda device: packed,
        shape,
        kv_tokens=compiled.schedule.plan.kv_tokens,
        interpret=compat.interpret_params("on_wait", detect_races=False),
    )
    reference = Reference(spec, weights)
    for row, prompt in enumerate(PROMPTS):
        before = prompt["ids_hf"][:-1]
        _, cache = reference.prefill(before)
        decoder.fill(row, cache.sequence(spec, 0, len(before)))
    steps = []
    for step in range(ANSWER):
        given = [([p["ids_hf"][-1], *p["greedy_hf"]])[step] for p in PROMPTS]
        steps.append(decoder.step(given, [len(p["ids_hf"]) - 1 + step for p in PROMPTS]))
    return Decoded(
        np.stack([step["ids"] for step in steps], axis=1), np.stack([step["logits"] for step in steps], axis=1)
    )


def test_f32_kernel_gives_the_published_tokens_and_the_logits_of_the_reference(
    weights: WeightSource, exact: list[np.ndarray], tmp_path: Path
) -> None:
    decoded = decode("f32", weights, tmp_path)
    for prompt, ids, logits, wanted in zip(PROMPTS, decoded.ids, decoded.logits, exact, strict=True):
        assert ids.tolist() == prompt["greedy_hf"]
        assert np.abs(logits - wanted).max() < 2e-3
        top = np.argsort(logits[0])[::-1][:5]
        assert top.tolist() == [token for token, _ in prompt["numpy_first_top5"]]
        assert np.allclose(logits[0][top], [value for _, value in prompt["numpy_first_top5"]], atol=2e-3)


def test_bf16_kernel_gives_the_published_tokens_and_errs_no_more_than_its_rounding(
    weights: WeightSource, exact: list[np.ndarray], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    decoded = decode("bf16", weights, tmp_path)
    judge = NumpyDecoder(load_spec("smollm2-135m"), weights, KERNEL)
    ours, theirs = [], []
    for prompt, ids, logits, wanted in zip(PROMPTS, decoded.ids, decoded.logits, exact, strict=True):
        assert ids.tolist() == prompt["greedy_hf"]
        rounded = judge.logits(prompt["ids_hf"] + prompt["greedy_hf"][: ANSWER - 1])[len(prompt["ids_hf"]) - 1 :]
        ours.append(np.abs(logits - wanted))
        theirs.append(np.abs(rounded - wanted))
    figures = {
        "kernel": (np.max(ours), np.mean(ours)),
        "numpy with the kernel's rounding": (np.max(theirs), np.mean(theirs)),
    }
    for name, (largest, mean) in figures.items():
        record_property(name, f"{largest:.4f} {mean:.4f}")
        print(f"{name}: largest logit difference to f32 {largest:.4f}, mean {mean:.4f}")
    assert np.max(ours) <= 1.3 * np.max(theirs)
    assert np.mean(ours) <= 1.3 * np.mean(theirs)

"""What schedc makes of a family's checkpoint: the spec of its config.json, the weights of its model.safetensors."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from schedc.backends.pallas import compat
from schedc.lower.graph import StepShape
from schedc.reference.reference import Reference
from schedc.run.decoder import Decoder
from schedc.spec.importers.import_config import import_config
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.open import open_weights
from schedc.weights.pack import pack_arrays
from schedc.weights.source import WeightSource
from tests.conformance.families import PROMPTS, STEPS, Family
from tests.kernels.built import build_kernel

CONTEXT = 64
"""As long as the longest sequence; of the others the last tiles of the cache are never reached."""


def opened(family: Family, folder: Path) -> tuple[ModelSpec, WeightSource]:
    """The imported spec and its weights, checked against it."""
    family.write_checkpoint(folder)
    spec = for_whole_sequences(import_config(folder / "config.json", family.name))
    return spec, open_weights(folder / "model.safetensors", spec)


def for_whole_sequences(spec: ModelSpec) -> ModelSpec:
    """Torch sees every sequence whole: where all are beyond the switch of longrope, all their tokens turn by it."""
    data = spec.model_dump(mode="json")
    for run in data["layers"]:
        for block in run["pattern"]:
            scaling = (block["mixer"].get("rope") or {}).get("scaling") or {}
            if scaling.get("kind") == "longrope" and scaling["original_max_position"] < min(PROMPTS) + STEPS:
                scaling["sequences"] = "long"
    return ModelSpec.model_validate(data)


def reference_logits(reference: Reference, family: Family) -> list[np.ndarray]:
    """f32[tokens, vocab] of every sequence, in one pass each."""
    return [reference.prefill(tokens)[0] for tokens in family.tokens()]


def kernel_logits(
    family: Family, spec: ModelSpec, source: WeightSource, steps: int = STEPS, policy: str = "ring"
) -> np.ndarray:
    """f32[steps, rows, vocab] of the generated kernel, interpreted, one row a sequence, each behind its prompt."""
    shape = StepShape(rows=len(family.prompts), context=CONTEXT, logits=True)
    built = build_kernel(spec, shape, policy)
    arrays = pack_arrays(built.schedule.layouts, for_kernel(source, spec))
    settings = compat.interpret_params("on_wait", detect_races=False)
    decoder = Decoder(built.module, spec, lambda device: arrays, shape, built.schedule.plan.kv_tokens, settings)
    dtype = jnp.bfloat16 if spec.quantization.weights == "bf16" else jnp.float32
    reference = Reference(spec, source, dtype)
    for row, (tokens, prompt) in enumerate(zip(family.tokens(), family.prompts, strict=True)):
        _, cache = reference.prefill(tokens[:prompt], CONTEXT)
        decoder.fill(row, cache.sequence(spec, 0, prompt))
    found = []
    for step in range(steps):
        positions = [prompt + step for prompt in family.prompts]
        now = [tokens[position] for tokens, position in zip(family.tokens(), positions, strict=True)]
        found.append(decoder.step(now, positions)["logits"])
        compat.reset_interpreter()
    return np.stack(found)


def decode_steps(logits: list[np.ndarray], steps: int = STEPS) -> np.ndarray:
    """f32[steps, rows, vocab]: of whole sequences what belongs to the decode steps."""
    rows = [values[len(values) - STEPS :][:steps] for values in logits]
    return np.stack(rows, axis=1)

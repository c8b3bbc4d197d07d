"""The families held to `transformers`: one small config.json each in `configs/`, torch's logits in `expected/`.

A checkpoint is made again from names, shapes and seeds, so only `regenerate.py` and `test_torch.py` need torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

HERE = Path(__file__).parent
PROMPTS = (3, 17, 30)
"""Tokens of the prompts, one sequence each; uneven, so that every row stands elsewhere in tiles and windows."""
PROMPTS_OF_STATES = (3, 17, 40)
"""The same where layers keep a state, whose longest sequence has 64 tokens."""
STEPS = 24
"""Decode steps after the prompt, of given tokens."""


CENTRES = {"A_log": -3.0, "dt_bias": 0.0}
"""By the end of a tensor's name, for decays that keep something of the first of 64 tokens: about 0.97 a token."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of the checkpoint. Vectors lie around `centre`: 1 for the factors of a norm, 0 for what is added.

    Other tensors have no centre but what `CENTRES` gives them.
    """

    shape: tuple[int, ...]
    centre: float


@dataclass(frozen=True)
class Family:
    """`name` is that of `configs/{name}.json` and `expected/{name}.npz`."""

    name: str

    @property
    def config_file(self) -> Path:
        return HERE / "configs" / f"{self.name}.json"

    @property
    def expected_file(self) -> Path:
        return HERE / "expected" / f"{self.name}.npz"

    @cached_property
    def config(self) -> dict[str, Any]:
        return json.loads(self.config_file.read_text())

    def text(self, key: str) -> Any:
        """A value of the text model, which a multimodal config wraps."""
        return self.config.get("text_config", self.config)[key]

    @property
    def prompts(self) -> tuple[int, ...]:
        text = self.config.get("text_config", self.config)
        return PROMPTS_OF_STATES if "linear_attn_config" in text or "linear_conv_kernel_dim" in text else PROMPTS

    def tokens(self) -> list[list[int]]:
        """The sequences: a prompt and the tokens of the decode steps."""
        random = np.random.default_rng(_seed(self.name))
        return [random.integers(0, self.text("vocab_size"), prompt + STEPS).tolist() for prompt in self.prompts]

    @cached_property
    def stored(self) -> Mapping[str, np.ndarray]:
        with np.load(self.expected_file) as data:
            return dict(data)

    def logits(self) -> list[np.ndarray]:
        """Torch's f32[tokens, vocab] of every sequence."""
        return [self.stored[f"logits_{row}"] for row in range(len(self.prompts))]

    def tensors(self) -> dict[str, Tensor]:
        entries = json.loads(str(self.stored["tensors"]))
        return {name: Tensor(tuple(shape), centre) for name, (shape, centre) in entries.items()}

    def write_checkpoint(self, folder: Path, tensors: Mapping[str, Tensor] | None = None) -> Path:
        """config.json and model.safetensors, f32, as a model's own folder has them."""
        tensors = self.tensors() if tensors is None else tensors
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config))
        save_file({name: values_of(name, tensor) for name, tensor in tensors.items()}, folder / "model.safetensors")
        return folder


def values_of(name: str, tensor: Tensor) -> np.ndarray:
    """f32, from the name alone: a matrix keeps activations of order one, a vector lies a tenth around its centre."""
    values = np.random.default_rng(_seed(name)).standard_normal(tensor.shape, np.float32)
    if len(tensor.shape) < 2 or tensor.centre:
        return values * np.float32(0.1) + np.float32(tensor.centre)
    return values * np.float32(tensor.shape[-1] ** -0.5)


def relative_difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of logits [..., vocab] over the largest expected logit of the same position."""
    return float((np.abs(found - expected).max(-1) / np.abs(expected).max(-1)).max())


def _seed(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little")


FAMILIES = tuple(Family(path.stem) for path in sorted((HERE / "configs").glob("*.json")))

"""Random weights of a spec's shapes, for tests and shrunk models."""

from hashlib import sha256

import numpy as np

from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.model import Block, ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.formats import FORMATS
from schedc.weights.random_decays import random_bias, random_scale
from schedc.weights.source import Rows, expected_shapes, family_of

MIXER_NORMS = {
    "q_norm": "qk_norm",
    "k_norm": "qk_norm",
    "output_norm": "output_norm",
    "q_a_norm": "q_norm",
    "kv_a_norm": "kv_norm",
}
"""Weight of a mixer's norm → the mixer's field that describes that norm."""


class RandomWeights:
    """Normal numbers, each weight from its own seed and name; scaled so that activations stay of order one.

    A projection that the spec has in a quantised format is that format's nearest, so its codes and scales are exact.
    """

    def __init__(self, spec: ModelSpec, seed: int) -> None:
        self._shapes = expected_shapes(spec)
        self._spec, self._seed = spec, seed

    def identity(self) -> str:
        return f"random seed {self._seed} of {sha256(self._spec.model_dump_json().encode()).hexdigest()}"

    def names(self) -> tuple[str, ...]:
        return tuple(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        format = self.format(name)
        if format is not None:
            return FORMATS[format].decode(self.numbers(name, rows or (0, self.shape(name)[0])))
        values = self._values(name)
        return values if rows is None else values[rows[0] : rows[1]]

    def format(self, name: str) -> str | None:
        family = family_of(name)
        format = None if family is None else self._spec.quantization.format(family)
        return None if format is None or FORMATS[format].exact else format

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        format = self.format(name)
        assert format is not None, name
        numbers = FORMATS[format].nearest(self._values(name))
        return {section: found[rows[0] : rows[1]] for section, found in numbers.items()}

    def _values(self, name: str) -> np.ndarray:
        shape = self._shapes[name]
        digest = sha256(f"{self._seed} {name}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        if name.endswith(".decay_scale"):
            return random_scale(self._block(name).mixer, random.random(shape, np.float32))
        if name.endswith(".decay_bias"):
            scale = self._values(name.replace("bias", "scale"))
            return random_bias(self._block(name).mixer, scale, random.random(shape, np.float32))
        values = random.standard_normal(shape, np.float32)
        if len(shape) == 2:
            values *= np.float32(1.0 if name == "embed" else shape[1] ** -0.5)
        elif name.endswith("_residual.query"):
            values *= np.float32(shape[0] ** -0.5)  # Scores of sources differ by about one.
        else:
            values *= np.float32(0.1)
            if self._is_norm_factor(name):
                values += np.float32(1.0)
        return values

    def _is_norm_factor(self, name: str) -> bool:
        """A norm weight around one, not a bias or an offset from one."""
        if name == "final_norm.weight":
            return not self._spec.final_norm.unit_offset
        if name == "embedding_norm.weight":
            return self._spec.embedding.norm is not None and not self._spec.embedding.norm.unit_offset
        if name.endswith("_residual.norm"):
            return True
        if not name.endswith(("norm.weight", "_norm", "norm_weight", "norm_in_weight", "norm_out_weight")):
            return False
        norm = _norm_of(self._block(name), name)
        return norm is not None and not norm.unit_offset

    def _block(self, name: str) -> Block:
        """That of the layer which a weight belongs to."""
        return next(at.block for at in self._spec.iter_layers() if at.layer == int(name.split(".")[1]))


def _norm_of(block: Block, name: str) -> Norm | None:
    """The norm whose factor `layers.{i}.…` is."""
    field = MIXER_NORMS.get(name.split(".")[-1])
    if field is not None:
        norm: Norm | None = getattr(block.mixer, field)
        return norm
    moe = block.feed_forward
    if isinstance(moe, Moe) and ".mlp." in name:
        if ".expert_norm" in name:
            return moe.expert_norm
        latent = moe.latent
        return None if latent is None else latent.norm_in if "norm_in" in name else latent.norm_out
    if "post_mixer" in name:
        return block.post_mixer_norm
    return block.post_feed_forward_norm if "post_feed_forward" in name else block.norm

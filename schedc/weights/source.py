"""Where weights come from, and the names every source gives them.

A weight is f32, a projection [out, in]. Names:
    embed [vocab, hidden]   head [vocab, hidden] (absent when tied)   head_bias [vocab]   final_norm.weight, .bias
    layers.{i}.attn.q, k, v, o and …_bias   layers.{i}.attn.q_norm, k_norm and …_bias
    layers.{i}.attn.sinks   layers.{i}.attn.gate   layers.{i}.attn.q_a, q_b, kv_a, kv_b and …_norm (latent attention)
    layers.{i}.attn.q_conv, k_conv, v_conv [channels, conv]   layers.{i}.attn.beta   layers.{i}.attn.output_norm
    layers.{i}.attn.decay, or decay_a, decay_b, and decay_bias, decay_scale   layers.{i}.attn.gate_a, gate_b
    layers.{i}.mlp.gate, up, down and …_bias
    layers.{i}.mlp.router and router_bias, selection_bias   layers.{i}.mlp.experts.{e}.gate, up, down and …_bias
    layers.{i}.mlp.shared.gate, up, down   layers.{i}.mlp.shared_gate
    layers.{i}.mlp.latent_in, latent_out   layers.{i}.mlp.expert_norm_weight, latent_norm_in_weight, …_out_weight
    layers.{i}.{pre_mixer,post_mixer,pre_feed_forward,post_feed_forward}_norm.weight, .bias
    layers.{i}.{mixer,feed_forward}_residual.gate (of gated residuals), .norm, .query (of block attention residuals)
    final_residual.norm, .query   embedding_norm.weight, .bias
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.spec.storage import Family
from schedc.weights.formats import FORMATS

Rows = tuple[int, int]
"""First row and the row after the last."""

_NO_PROJECTION = ("_bias", "_conv", "_norm", "_scale", "sinks", "weight")
"""Endings of the vectors and filters of mixers and feed-forwards."""

_DECAY = ("decay", "decay_a", "decay_b", "beta")
"""Projections of mixers with state that are never quantised with the others."""


class WeightSource(Protocol):
    def identity(self) -> str:
        """Text that differs when the weights may differ; packing resumes only with the same one."""
        ...

    def names(self) -> tuple[str, ...]: ...

    def shape(self, name: str) -> tuple[int, ...]:
        """Raises KeyError for a name that is not in `names()`."""
        ...

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        """f32, dequantised; of the rows rows[0] up to rows[1], if given. Reads no more of the file than that."""
        ...

    def format(self, name: str) -> str | None:
        """The format a projection is quantised in; None for floating-point numbers."""
        ...

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        """Codes and scales of a quantised projection as they are stored: the sections of its format."""
        ...


def stored_numbers(source: WeightSource, name: str, wanted: str, rows: Rows) -> dict[str, np.ndarray]:
    """Rows of a projection in the format a kernel wants: as stored, or floating-point ones as bf16 or f32.

    Raises UserError for a weight that is stored in another format: nothing is rounded to a quantised format here.
    """
    kind = FORMATS[wanted]
    if kind.exact:
        return kind.nearest(source.load(name, rows))
    found = source.format(name)
    if found is None:
        raise UserError(
            f"{name}: the weights are floating-point numbers, the kernel wants {wanted}; pack them with "
            f"--round nearest, or compile for the format they have"
        )
    numbers = source.numbers(name, rows)
    if found == wanted:
        return numbers
    if found in kind.finer_than:
        return kind.cut(numbers)
    raise UserError(f"{name}: stored as {found}, the kernel wants {wanted}; compile for {found}")


def family_of(name: str) -> Family | None:
    """The family that a weight is a projection of; None for what is no projection."""
    part = name.split(".", 2)[2] if name.startswith("layers.") else name
    own = part.rpartition(".")[2]
    if name == "head":
        return "head"
    if not part.startswith(("attn.", "mlp.")) or own.endswith(_NO_PROJECTION):
        return None
    if part.startswith("attn."):
        return "decay" if own in _DECAY else "attention"
    if part == "mlp.router":
        return "router"
    if part.startswith("mlp.experts."):
        return "experts"
    return "shared" if part.startswith("mlp.shared") else "dense"


def expected_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The shape of every weight of the model, by the names of this file."""
    shapes = {
        _outer_name(name): shape[::-1] if name == "head" else shape for name, shape in spec.outer_parameters().items()
    }
    for at in spec.iter_layers():
        for name, shape in spec.layer_parameters(at.block).items():
            for weight, own in _each_expert(weight_name(name), shape):
                shapes[f"layers.{at.layer}.{weight}"] = own if weight.endswith("_conv") else own[::-1]
    return shapes


def _each_expert(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A weight of every expert has a name each, any other stands for itself."""
    before, experts, after = name.partition(".experts.")
    if not experts:
        yield name, shape
        return
    for expert in range(shape[0]):
        yield f"{before}.experts.{expert}.{after}", shape[1:]


def _outer_name(name: str) -> str:
    return "embed" if name == "embedding" else name


def weight_name(name: str) -> str:
    """`mixer.q_norm_weight` → `attn.q_norm`, `feed_forward.up_bias` → `mlp.up_bias`."""
    part, _, weight = name.partition(".")
    match part:
        case "mixer":
            return f"attn.{weight.replace('_norm_weight', '_norm')}"
        case "feed_forward":
            return f"mlp.{weight}"
        case _:
            return name


def check_weights(source: WeightSource, spec: ModelSpec, where: str) -> None:
    """Raises UserError that names every weight that is absent, left over or of another shape than the spec's."""
    expected, found = expected_shapes(spec), set(source.names())
    problems = []
    for name, shape in expected.items():
        if name not in found:
            problems.append(f"{name}: missing, expected {_show(shape)}")
        elif source.shape(name) != shape:
            problems.append(f"{name}: expected {_show(shape)}, found {_show(source.shape(name))}")
    for name in source.names():
        if name not in expected and not (name == "head" and spec.embedding.tied):
            problems.append(f"{name}: not in the spec, found {_show(source.shape(name))}")
    if problems:
        raise UserError("\n".join([f"{where}: not the weights of {spec.name}:", *(f"  {line}" for line in problems)]))


def _show(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"

"""What a spec can say and the kernels cannot do yet: each by its key, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.lower.caches.shape import chunk_tokens
from schedc.lower.graph import LANES, round_up
from schedc.lower.registry import FEED_FORWARDS, MIXERS
from schedc.placement.heads import split_heads
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import Block, ModelSpec


def unsupported(spec: ModelSpec, devices: int) -> Iterator[str]:
    """One line a key that a kernel of this model on so many devices would need."""
    if spec.head.bias:
        yield "head.bias: a bias of the head is not supported by the kernel yet"
    if spec.embedding.tied and spec.quantization.format("head") != spec.quantization.embedding_dtype:
        head, table = spec.quantization.format("head"), spec.quantization.embedding_dtype
        yield f"quantization.head: {head}, but the head is the embedding (tied), which is {table}"
    if spec.kv.page_tokens is not None:
        chunk = chunk_tokens(spec.kv.dtype)
        if spec.kv.page_tokens % chunk:
            yield (
                f"kv.page_tokens: {spec.kv.page_tokens} is not a multiple of {chunk}, 8 word rows of {spec.kv.dtype}; "
                f"use {round_up(spec.kv.page_tokens, chunk)}"
            )
    if not spec.final_norm.parameters(spec.hidden):
        yield "final_norm.weight: a final norm without weight is not supported by the kernel yet"
    for run, pattern in enumerate(spec.layers):
        for place, block in enumerate(pattern.pattern):
            if not any(len(shape) == 1 for shape in spec.layer_parameters(block).values()):
                where = f"layers[{run}].pattern[{place}].norm.weight"
                yield f"{where}: a layer without any vector (norms, biases) is not supported by the kernel yet"
            for problem in _of_block(block, devices):
                yield f"layers[{run}].pattern[{place}].{problem}"


def _of_block(block: Block, devices: int) -> Iterator[str]:
    for name, part, known in (("mixer", block.mixer, MIXERS), ("feed_forward", block.feed_forward, FEED_FORWARDS)):
        if part.kind not in known:
            yield f"{name}.kind: {part.kind} is not supported by the kernel yet"
    if isinstance(block.mixer, Gqa):
        yield from _of_gqa(block.mixer, devices)
    if isinstance(block.mixer, Kda | GatedDelta):
        yield from _of_delta_rule(block.mixer)
    if isinstance(block.feed_forward, Moe):
        yield from _of_moe(block.feed_forward)
    if isinstance(block.mixer, Mla):
        for name, norm in (("q_norm", block.mixer.q_norm), ("kv_norm", block.mixer.kv_norm)):
            if norm is not None and norm.scale_first:
                yield f"mixer.{name}.scale_first: a norm that scales first is not supported by the kernel yet"


def _of_gqa(gqa: Gqa, devices: int) -> Iterator[str]:
    if gqa.qk_norm is not None and gqa.qk_norm_over == "heads":
        if not split_heads(gqa.heads, gqa.kv_heads, devices).kv.copies(devices):
            yield (
                f"mixer.qk_norm_over: the {gqa.kv_heads} kv heads are not on equally many of {devices} devices each, "
                "and a sum over all heads would count some more often than others"
            )
        if gqa.qk_norm.kind == "layer" or gqa.qk_norm.scale_first:
            yield "mixer.qk_norm: over all heads jointly only rms without scale_first is supported by the kernel yet"


def _of_delta_rule(mixer: Kda | GatedDelta) -> Iterator[str]:
    for name in ("key_dim", "value_dim"):
        size = getattr(mixer, name)
        if size > LANES:
            yield f"mixer.{name}: {size}, but keys and values over {LANES} are not supported by the kernel yet"


def _of_moe(moe: Moe) -> Iterator[str]:
    if moe.weigh_input and moe.latent is not None:
        yield "feed_forward.weigh_input: with a latent it is not supported by the kernel yet"
    if moe.shared_gate and moe.shared is not None and moe.shared.bias.down:
        yield "feed_forward.shared.bias.down: with a shared_gate it is not supported by the kernel yet"

"""A kernel with what is needed to call it, and the decoder that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.lower.graph import StepShape
    from schedc.run.decoder import Decoder
    from schedc.spec.model import ModelSpec
    from schedc.weights.layout import Layout
    from schedc.weights.source import WeightSource


@dataclass(frozen=True)
class Runnable:
    """A kernel's source and what is needed to call it."""

    source: str
    spec: ModelSpec
    layouts: Sequence[Layout]
    shape: StepShape
    kv_tokens: int

    def decoder(
        self, weights: WeightSource, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> tuple[Decoder, str]:
        """A decoder on a TPU if jax has one, else one that interprets; and which of both.

        `progress` hears of (bytes packed, bytes in all).
        """
        import jax

        from schedc.backends.pallas.compat import interpret_params
        from schedc.run.decoder import Decoder
        from schedc.run.generate import load_kernel_source
        from schedc.run.packed import packed_weights

        on_tpu = jax.default_backend() == "tpu"
        interpret = None if on_tpu else interpret_params("eager", detect_races=False)
        kernel = load_kernel_source(self.source, "kernel")
        packed = packed_weights(self.layouts, weights, self.spec, progress)
        decoder = Decoder(kernel, self.spec, packed, self.shape, self.kv_tokens, interpret)
        return decoder, "TPU" if on_tpu else "CPU, interpreted"

    def generate(self, prompt: str, max_tokens: int, weights: Path | None = None) -> Iterator[str]:
        """The text that follows `prompt`, a token at a time, greedily, as one row of the kernel.

        `weights`: a GGUF file, or a folder of safetensors with its tokenizer.json; those of the model's package if it
        has one. Raises UserError if there are none, or they are not the spec's.
        """
        from schedc.run.platform import require_devices, use_best

        use_best(self.shape.devices)
        require_devices(self.shape.devices)
        from schedc.reference.reference import Reference
        from schedc.run.generate import check_prompts, generate, prefill
        from schedc.weights.fetch import fetch_weights
        from schedc.weights.open import open_weights
        from schedc.weights.tokenizer import load_tokenizer

        if self.shape.rows_are == "tokens":
            raise UserError("the rows of this kernel are tokens of one sequence: generate with `schedc run`")
        path = fetch_weights(self.spec.name) if weights is None else weights
        source, words = open_weights(path, self.spec), load_tokenizer(path)
        ids = words.encode(prompt)
        check_prompts([ids], self.shape.sequences, self.shape.context)
        decoder, _ = self.decoder(source)
        prefill(decoder, Reference(self.spec, source), [ids])
        eos, text = {*self.spec.eos_token_ids, *words.eos_token_ids}, words.stream()
        for (token,) in generate(decoder, [ids], max_tokens, eos):
            if token is not None and token not in eos:
                yield text.push(token)
        yield text.finish()

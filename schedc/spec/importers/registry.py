"""Model types → the functions that read their configs, and why some model types cannot be read."""

from collections.abc import Callable
from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.exaone4 import exaone4
from schedc.spec.importers.gemma import gemma2, gemma3
from schedc.spec.importers.llama import llama
from schedc.spec.importers.mistral import mistral
from schedc.spec.importers.phi3 import phi3
from schedc.spec.importers.qwen import qwen2, qwen3
from schedc.spec.importers.starcoder2 import starcoder2

Importer = Callable[[Config, str], dict[str, Any]]
"""(config, name of the model) → the spec as plain data; faults go into the config's ledger."""

FAMILIES: dict[str, Importer] = {
    "exaone4": exaone4,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "llama": llama,
    "mistral": mistral,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "starcoder2": starcoder2,
}

INEXPRESSIBLE_FAMILIES: dict[str, str] = {
    "falcon": "attention and feed-forward in parallel are not supported",
    "gpt2": "learned positions are not supported",
    "llama4": "experts and chunked attention are not supported yet",
    "mixtral": "experts are not supported yet",
    "olmo2": "q and k are normalised over all heads jointly, a spec normalises each head",
    "lfm2": "convolution mixers are not supported",
}
"""What no key of a config says about a family, and a spec cannot say either."""

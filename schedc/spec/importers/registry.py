"""Model types → the functions that read their configs, and why some model types cannot be read."""

from collections.abc import Callable
from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.deepseek import deepseek_v2, deepseek_v3
from schedc.spec.importers.exaone4 import exaone4
from schedc.spec.importers.gemma import gemma2, gemma3
from schedc.spec.importers.glm4_moe import glm4_moe
from schedc.spec.importers.gpt_oss import gpt_oss
from schedc.spec.importers.kimi_linear import kimi_linear
from schedc.spec.importers.llama import llama
from schedc.spec.importers.llama4 import llama4
from schedc.spec.importers.minimax_m2 import minimax_m2
from schedc.spec.importers.mistral import mistral
from schedc.spec.importers.mixtral import mixtral
from schedc.spec.importers.muse_spark import muse_spark
from schedc.spec.importers.olmo2 import olmo2
from schedc.spec.importers.phi3 import phi3
from schedc.spec.importers.qwen import qwen2, qwen3
from schedc.spec.importers.qwen3_moe import qwen3_moe
from schedc.spec.importers.qwen3_next import qwen3_5, qwen3_5_moe, qwen3_next
from schedc.spec.importers.starcoder2 import starcoder2

Importer = Callable[[Config, str], dict[str, Any]]
"""(config, name of the model) → the spec as plain data; faults go into the config's ledger."""

FAMILIES: dict[str, Importer] = {
    "deepseek_v2": deepseek_v2,
    "deepseek_v3": deepseek_v3,
    "exaone4": exaone4,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "glm4_moe": glm4_moe,
    "gpt_oss": gpt_oss,
    "kimi_k2": deepseek_v3,
    "kimi_linear": kimi_linear,
    "llama": llama,
    "llama4_text": llama4,
    "minimax_m2": minimax_m2,
    "mistral": mistral,
    "mixtral": mixtral,
    "muse_spark_text": muse_spark,
    "olmo2": olmo2,
    "phi3": phi3,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "qwen3_5_moe_text": qwen3_5_moe,
    "qwen3_5_text": qwen3_5,
    "qwen3_moe": qwen3_moe,
    "qwen3_next": qwen3_next,
    "starcoder2": starcoder2,
}

INEXPRESSIBLE_FAMILIES: dict[str, str] = {
    "falcon": "attention and feed-forward in parallel are not supported",
    "gpt2": "learned positions are not supported",
    "lfm2": "convolution mixers are not supported",
    "nemotron_h": "state-space mixers are not supported",
}
"""What no key of a config says about a family, and a spec cannot say either."""

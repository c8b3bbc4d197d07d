"""The families in their own `transformers` classes on the CPU, in float32."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file
from transformers import AutoConfig, PreTrainedModel
from transformers.utils import logging

from tests.conformance.families import CENTRES, Family, Tensor

logging.disable_progress_bar()
logging.set_verbosity_error()


def tensors_of(family: Family) -> dict[str, Tensor]:
    """The tensors of a checkpoint as `transformers` writes it, with the mean of each vector at initialisation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        family.write_checkpoint(folder, {})
        model = _class(family)._from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
        model.save_pretrained(folder)
        saved = load_file(folder / "model.safetensors")
    return {
        key: Tensor(values.shape, CENTRES.get(key.rpartition(".")[2], _centre(values)))
        for key, values in sorted(saved.items())
    }


def _centre(values: np.ndarray) -> float:
    return round(float(values.mean())) if values.ndim < 2 else 0.0


def logits_of(family: Family, tensors: dict[str, Tensor]) -> list[np.ndarray]:
    """f32[tokens, vocab] of every sequence, from the checkpoint that the family's own loader reads."""
    with tempfile.TemporaryDirectory() as name:
        folder = family.write_checkpoint(Path(name), tensors)
        model, report = _class(family).from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
    faults = {key: value for key, value in report.items() if value}
    assert not faults, f"{family.name}: {faults}"
    model.eval()
    found = []
    for tokens in family.tokens():
        with torch.no_grad():
            found.append(model(torch.tensor([tokens]), use_cache=False).logits[0].numpy())
    return found


def config_of(family: Family) -> dict[str, Any]:
    """The config.json that `transformers` writes for the family's."""
    with tempfile.TemporaryDirectory() as name:
        folder = family.write_checkpoint(Path(name), {})
        AutoConfig.from_pretrained(folder).save_pretrained(folder)
        return json.loads((folder / "config.json").read_text())


def _class(family: Family) -> type[PreTrainedModel]:
    """The class that the config names; that of a multimodal model has its other towers too."""
    return getattr(transformers, family.config["architectures"][0])

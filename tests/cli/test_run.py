"""`schedc run` on a small model of its own: every new token is the one the reference would choose."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from schedc.reference.reference import Reference
from schedc.spec.dump import dump_spec
from schedc.spec.model import ModelSpec
from schedc.weights.random_weights import RandomWeights

from .conftest import Command

pytestmark = pytest.mark.kernel

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "one", "dog"]
NORM = {"kind": "rms", "eps": 1e-5}
NAMES = {
    "attn.q": "self_attn.q_proj",
    "attn.k": "self_attn.k_proj",
    "attn.v": "self_attn.v_proj",
    "attn.o": "self_attn.o_proj",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
    "pre_mixer_norm.weight": "input_layernorm",
    "pre_feed_forward_norm.weight": "post_attention_layernorm",
}


@pytest.fixture
def spec() -> ModelSpec:
    block = {
        "mixer": {"kind": "gqa", "heads": 4, "kv_heads": 2, "head_dim": 64, "rope": {"theta": 1000.0}},
        "feed_forward": {"kind": "dense", "width": 128, "gated": True, "activation": "silu"},
        "norm": NORM,
    }
    return ModelSpec.model_validate(
        {
            "name": "words",
            "hidden": 128,
            "vocab": 128,
            "max_position": 64,
            "embedding": {"tied": True},
            "layers": [{"repeat": 2, "pattern": [block]}],
            "final_norm": NORM,
            "quantization": {"weights": "f32"},
            "kv": {"dtype": "f32"},
        }
    )


def write_model(spec: ModelSpec, folder: Path) -> RandomWeights:
    """The spec, its weights as Hugging Face names them, and a tokenizer with a word a token."""
    source = RandomWeights(spec, 3)
    tensors = {"model.embed_tokens.weight": source.load("embed"), "model.norm.weight": source.load("final_norm.weight")}
    for layer in range(spec.num_layers):
        for name, theirs in NAMES.items():
            tensors[f"model.layers.{layer}.{theirs}.weight"] = source.load(f"layers.{layer}.{name}")
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    vocabulary = {word: index for index, word in enumerate([*WORDS, *(f"w{n}" for n in range(len(WORDS), spec.vocab))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="the"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "words.yaml").write_text(dump_spec(spec))
    return source


def greedy(reference: Reference, prompt: list[int], count: int) -> list[int]:
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(np.argmax(reference.prefill(ids)[0][-1])))
    return ids[len(prompt) :]


def test_the_kernel_chooses_the_tokens_of_the_reference(
    schedc: Command, spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEDC_CACHE", str(Path("cache").resolve()))
    reference = Reference(spec, write_model(spec, Path("m")))
    prompts = ["the cat sat on a mat", "one dog"]
    given = ("--weights-file", "m", "-n", "4")
    said = schedc("run", "m/words.yaml", *given, "-p", prompts[0], "-p", prompts[1], "--json")
    assert said.code == 0, said.err
    result = said.json()
    for row, text in zip(result["rows"], prompts, strict=True):
        assert row["prompt_ids"] == [WORDS.index(word) for word in text.split()]
        assert row["ids"] == greedy(reference, row["prompt_ids"], 4)
    assert result["platform"] == "CPU, interpreted" and result["tokens_per_second"] > 0
    packed = list(Path("cache/words").glob("*.packed"))
    assert len(packed) == 1

    schedc("compile", "m/words.yaml", "--rows", "2", "--no-check", "-o", "k")
    said = schedc("run", "k", *given, "-p", prompts[0], "--steps-per-call", "3")
    assert said.code == 0, said.err
    assert said.out == f"{prompts[0]}{result['rows'][0]['text']}\n"
    assert "4 tokens, " in said.err and "CPU, interpreted; the first call of 3 steps took" in said.err
    assert list(Path("cache/words").glob("*.packed")) == packed  # the layout does not depend on the rows


@pytest.mark.slow
def test_smollm2_knows_the_capital_of_france(schedc: Command) -> None:
    said = schedc("run", "smollm2-135m", "-p", "The capital of France is", "-n", "2", "--json")
    assert said.code == 0, said.err
    assert said.json()["rows"][0]["text"] == " Paris."
    assert json.dumps(said.json()["rows"][0]["ids"]) == "[7042, 30]"

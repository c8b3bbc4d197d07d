"""Tokenizers out of files, and text that appears as its tokens come."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as AnyTokenizer
from tokenizers import decoders, models, pre_tokenizers

from schedc.errors import UserError
from schedc.weights.tokenizer import Tokenizer, load_tokenizer

PROMPTS = json.loads((Path(__file__).parents[1] / "reference" / "smollm2_reference.json").read_text())["prompts"]


@pytest.fixture(scope="module")
def tokenizer(smollm2_file: Path) -> Tokenizer:
    return load_tokenizer(smollm2_file)


@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_smollm2_text_becomes_the_known_ids_and_back(tokenizer: Tokenizer, prompt: dict) -> None:
    assert tokenizer.encode(prompt["prompt"]) == prompt["ids_hf"]
    assert tokenizer.decode(prompt["ids_hf"]) == prompt["prompt"]
    stream = tokenizer.stream()
    assert "".join(stream.push(token) for token in prompt["greedy_hf"]) + stream.finish() == prompt["text"]
    assert tokenizer.eos_token_ids == (2,)


def test_a_character_of_several_tokens_appears_with_its_last(tokenizer: Tokenizer) -> None:
    text = "né 🙂🙂 日本"
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in tokenizer.encode(text)]
    assert "".join(pieces) == text
    assert "" in pieces
    assert "�" not in "".join(pieces)
    assert stream.finish() == ""


def test_an_incomplete_character_comes_out_at_the_end(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("🙂")
    stream = tokenizer.stream()
    assert len(ids) > 1
    assert "".join(stream.push(token) for token in ids[:-1]) == ""
    assert stream.finish() == tokenizer.decode(ids[:-1])
    assert "�" in tokenizer.decode(ids[:-1])


def test_a_tokenizer_json_is_read_from_its_folder(tmp_path: Path) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = AnyTokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    read = load_tokenizer(tmp_path)
    assert read.decode(read.encode("to be ¿?")) == "to be ¿?"


def test_files_without_a_tokenizer_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer.json: is not a tokenizer: "):
        load_tokenizer(tmp_path)
    with pytest.raises(UserError, match=r"absent.json: cannot be read: No such file or directory"):
        load_tokenizer(tmp_path / "absent.json")

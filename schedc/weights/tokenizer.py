"""Text to token ids and back: from the metadata of a GGUF file, or from a tokenizer.json."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedc.errors import UserError
from schedc.weights.gguf_header import read_header
from schedc.yaml_text import parse_yaml

if TYPE_CHECKING:
    import tokenizers

_CONTROL, _USER_DEFINED = 3, 4  # tokenizer.ggml.token_type


class Tokenizer:
    def __init__(self, tokenizer: "tokenizers.Tokenizer", eos_token_ids: tuple[int, ...] = ()) -> None:
        """`eos_token_ids`: as the file says; none if it does not say."""
        self._tokenizer = tokenizer
        self.eos_token_ids = eos_token_ids

    def encode(self, text: str) -> list[int]:
        """Special tokens in the text (`<|im_start|>`) become their ids; none are added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text, special tokens included."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def stream(self) -> "TextStream":
        return TextStream(self._tokenizer)


class TextStream:
    """Text as its tokens come: a character is given out when its last byte is there."""

    def __init__(self, tokenizer: "tokenizers.Tokenizer") -> None:
        from tokenizers.decoders import DecodeStream

        self._tokenizer = tokenizer
        self._decoder = DecodeStream(skip_special_tokens=False)
        self._ids: list[int] = []
        self._given = 0

    def push(self, token: int) -> str:
        """The new text, empty while a character is incomplete."""
        self._ids.append(token)
        text = self._decoder.step(self._tokenizer, token) or ""
        self._given += len(text)
        return text

    def finish(self) -> str:
        """What is left: a replacement character for every incomplete one."""
        text: str = self._tokenizer.decode(self._ids, skip_special_tokens=False)
        return text[self._given :]


def load_tokenizer(path: Path) -> Tokenizer:
    """From a GGUF file, a tokenizer.json, or a folder with a tokenizer.json.

    Raises UserError if the file cannot be read or has no tokenizer that is supported.
    """
    try:
        import tokenizers
    except ImportError:
        raise UserError(f"{path}: reading it needs the tokenizers package: pip install 'schedc[weights]'") from None
    if path.suffix == ".gguf":
        return _from_gguf(path, read_header(path).metadata)
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return Tokenizer(tokenizers.Tokenizer.from_str(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # the tokenizers library raises no narrower class
        raise UserError(f"{file}: is not a tokenizer: {error}") from None


def _from_gguf(path: Path, metadata: dict[str, Any]) -> Tokenizer:
    import tokenizers
    from tokenizers import AddedToken, decoders, models

    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "gpt-2")
    known = parse_yaml((files("schedc.weights") / "pre_tokenizers.yaml").read_text(encoding="utf-8"))
    if kind != "gpt2":
        raise UserError(f"{path}: tokenizer model {kind!r} is not supported, only byte-level BPE (gpt2); {_INSTEAD}")
    if pre not in known:
        raise UserError(f"{path}: pre-tokenizer {pre!r} is not supported, only {', '.join(known)}; {_INSTEAD}")
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ", 1)) for pair in metadata["tokenizer.ggml.merges"]]
    tokenizer = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = _pre_tokenizer(**known[pre])
    tokenizer.decoder = decoders.ByteLevel()
    types = metadata.get("tokenizer.ggml.token_type", [])
    special = [token for token, kind in zip(tokens, types, strict=False) if kind in (_CONTROL, _USER_DEFINED)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    eos = metadata.get("tokenizer.ggml.eos_token_id")
    return Tokenizer(tokenizer, () if eos is None else (eos,))


_INSTEAD = "give a tokenizer.json instead"


def _pre_tokenizer(digits: bool = False, pattern: str | None = None) -> "tokenizers.pre_tokenizers.PreTokenizer":
    from tokenizers import Regex, pre_tokenizers

    steps: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    if pattern is not None:
        steps.append(pre_tokenizers.Split(Regex(pattern), "isolated"))
    return pre_tokenizers.Sequence(
        [*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    )

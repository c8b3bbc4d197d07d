"""Open a file or folder of weights, whichever kind it is, checked against a spec."""

from collections.abc import Callable
from pathlib import Path

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.gguf_header import MAGIC
from schedc.weights.gguf_source import GgufWeights
from schedc.weights.safetensors_source import SafetensorsWeights
from schedc.weights.source import WeightSource, check_weights


def open_weights(path: Path, spec: ModelSpec, note: Callable[[str], None] | None = None) -> WeightSource:
    """A GGUF file, a safetensors file or index, or a folder with one. Tells GGUF by its first bytes or suffix.

    `note` is called with a line for everything stored that no weight of the spec reads.
    Raises UserError if it cannot be read or is truncated, or with every weight that is not as the spec says.
    """
    if _is_gguf(path):
        source: WeightSource = GgufWeights(path, spec)
        notes: tuple[str, ...] = ()
    else:
        source = stored = SafetensorsWeights(path, spec)
        notes = stored.notes()
    check_weights(source, spec, str(path))
    if note is not None:
        for line in notes:
            note(line)
    return source


def _is_gguf(path: Path) -> bool:
    if path.suffix == ".gguf" or path.is_dir():
        return path.suffix == ".gguf"
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None

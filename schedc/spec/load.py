"""Read a model spec by the name of a model that comes with schedc, or from a YAML file."""

from pathlib import Path

from schedc import model_specs
from schedc.errors import UserError
from schedc.files import parsed, read_text
from schedc.names import nearest
from schedc.spec.model import ModelSpec


def list_models() -> list[str]:
    """Names of the specs that come with schedc, sorted."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def load_spec(path_or_name: str | Path) -> ModelSpec:
    """A name without a slash or a YAML suffix is a model of `list_models()`, anything else a file.

    Raises UserError for a name or a file that is not there, SpecError with every fault for a bad spec.
    """
    text = str(path_or_name)
    if isinstance(path_or_name, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        return _load_file(Path(path_or_name))
    if text not in list_models():
        close = nearest(text, list_models())
        hint = f"nearest: {', '.join(close)}" if close else f"known: {', '.join(list_models())}"
        raise UserError(f"unknown model {text!r}; {hint}; a spec of your own is given as a file, ./{text}.yaml")
    return parse_spec((_folder() / f"{text}.yaml").read_text(encoding="utf-8"), f"model {text}")


def _folder() -> Path:
    return Path(next(iter(model_specs.__path__)))


def _load_file(path: Path) -> ModelSpec:
    if path.suffix == ".ir" and path.is_file():
        raise UserError(
            f"{path}: is a program, not a model spec, which is needed here; programs are taken by `schedc check`, "
            "`emit`, `diff`, `explain` step and transfer, and all of `inspect` but decisions, placement and llo"
        )
    return parse_spec(read_text(path), str(path))


def parse_spec(text: str, source: str) -> ModelSpec:
    """`source` names the text in messages. Raises SpecError with every fault."""
    return parsed(ModelSpec, text, source)

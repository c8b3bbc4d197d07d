"""Read a model spec by the name of a model that comes with schedc, or from a YAML file."""

from pathlib import Path

from schedc import model_specs
from schedc.errors import SpecError, UserError
from schedc.names import nearest
from schedc.spec.model import ModelSpec
from schedc.validation import validate
from schedc.yaml_text import YamlError, parse_yaml


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
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    return parse_spec(text, str(path))


def parse_spec(text: str, source: str) -> ModelSpec:
    """`source` names the text in messages. Raises SpecError with every fault."""
    try:
        data = parse_yaml(text)
    except YamlError as fault:
        raise SpecError(source, [str(fault)]) from None
    spec, faults = validate(ModelSpec, data)
    if spec is None:
        raise SpecError(source, faults)
    return spec

"""A user's file as text, and YAML text as a pydantic model: what is wrong is said with the name of the file."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from schedc.errors import SpecError, UserError
from schedc.validation import validate
from schedc.yaml_text import YamlError, parse_yaml

M = TypeVar("M", bound=BaseModel)


def read_text(path: Path, error: type[UserError] = UserError) -> str:
    """Raises `error` for a file that cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror or fault}") from None
    except UnicodeDecodeError:
        raise error(f"{path}: is not UTF-8 text") from None


def parsed(model: type[M], text: str, source: str) -> M:
    """`source` names the text in messages. Raises SpecError with every fault."""
    try:
        data = parse_yaml(text)
    except YamlError as fault:
        raise SpecError(source, [str(fault)]) from None
    return validated(model, data, source)


def validated(model: type[M], data: Any, source: str) -> M:
    """Raises SpecError with every fault."""
    made, faults = validate(model, data)
    if made is None:
        raise SpecError(source, faults)
    return made

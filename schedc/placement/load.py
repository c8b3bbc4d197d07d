"""Rules of a file."""

from __future__ import annotations

from pathlib import Path

from schedc.errors import UserError
from schedc.placement.rules import PlacementRules
from schedc.validation import validate
from schedc.yaml_text import YamlError, parse_yaml


def load_rules(path: Path) -> PlacementRules:
    """Raises UserError with every fault of the file."""
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    except YamlError as error:
        raise UserError(f"{path}: {error}") from None
    rules, faults = validate(PlacementRules, {} if data is None else data)
    if rules is None:
        raise UserError("\n".join([f"{path}:", *(f"  {fault}" for fault in faults)]))
    return rules

"""Rules of a file."""

from __future__ import annotations

from pathlib import Path

from schedc.errors import UserError
from schedc.files import read_text
from schedc.placement.rules import PlacementRules
from schedc.validation import validate
from schedc.yaml_text import YamlError, parse_yaml


def load_rules(path: Path) -> PlacementRules:
    """Raises UserError with every fault of the file."""
    try:
        data = parse_yaml(read_text(path))
    except YamlError as error:
        raise UserError(f"{path}: {error}") from None
    rules, faults = validate(PlacementRules, {} if data is None else data)
    if rules is None:
        raise UserError("\n".join([f"{path}:", *(f"  {fault}" for fault in faults)]))
    return rules

"""`import_config`: the entry point of the importers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedc.errors import ConfigError, UserError
from schedc.files import read_text
from schedc.spec.importers.config import Config, means_something
from schedc.spec.importers.keys import INEXPRESSIBLE_KEYS
from schedc.spec.importers.quantization import quantization
from schedc.spec.importers.registry import FAMILIES, INEXPRESSIBLE_FAMILIES
from schedc.spec.importers.wrappers import text_model
from schedc.spec.model import ModelSpec
from schedc.validation import validate


@dataclass(frozen=True)
class Imported:
    """A spec, and what of the config it does without: one line a key, with the reason."""

    spec: ModelSpec
    left_out: tuple[str, ...]


def import_config(config: dict[str, Any] | str | Path, name: str | None = None) -> ModelSpec:
    """The spec of the model of a `config.json`, given as its data or its path; of a multimodal one, its text model.

    `name` defaults to the file's name, or to its folder's if the file is called config.json.
    Raises UserError for a file that cannot be read, ConfigError with every key a spec cannot express.
    """
    return import_with_report(config, name).spec


def import_with_report(config: dict[str, Any] | str | Path, name: str | None = None) -> Imported:
    """As `import_config`, with what was left out."""
    if isinstance(config, dict):
        return _import(config, "config", name or "model")
    path = Path(config)
    stem = path.resolve().parent.name if path.name == "config.json" else path.stem
    return _import(_read_json(path), str(path), name or stem.lower())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_text(path), object_pairs_hook=_distinct)
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValueError as error:  # a duplicate key, or a number of more digits than Python reads
        raise UserError(f"{path}: {str(error).partition(';')[0]}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: is not a mapping of keys")
    return data


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for a key that stands twice, of which JSON would take the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = dict.fromkeys(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"duplicate key {', '.join(map(repr, twice))}")
    return found


def _import(data: dict[str, Any], source: str, name: str) -> Imported:
    outer = Config(data, source)
    config = text_model(outer) or outer
    model_type = config.data.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise ConfigError(source, [_family_fault(model_type, config.prefix), *_inexpressible(data)])
    config.only_architectures("ForCausalLM")
    fields = FAMILIES[model_type](config, name)
    fields["quantization"] = quantization(config, fields["layers"])
    ledgers = (config,) if config is outer else (outer, config)
    for ledger in ledgers:
        ledger.account()
    faults = [fault for ledger in ledgers for fault in ledger.faults]
    if faults:
        raise ConfigError(source, faults)
    spec, faults = validate(ModelSpec, fields)
    if spec is None:
        raise ConfigError(source, faults)
    return Imported(spec, tuple(line for ledger in ledgers for line in ledger.left_out))


def _family_fault(model_type: object, prefix: str) -> str:
    if model_type is None:
        return f"{prefix}model_type: missing, so the family is unknown"
    reason = INEXPRESSIBLE_FAMILIES.get(str(model_type))
    if reason:
        return f"{prefix}model_type: {model_type}: {reason}"
    return f"{prefix}model_type: {model_type} is not a family that can be imported; known: {', '.join(FAMILIES)}"


def _inexpressible(data: dict[str, Any], prefix: str = "") -> list[str]:
    faults = []
    for key, value in data.items():
        if key in INEXPRESSIBLE_KEYS and means_something(value):
            faults.append(f"{prefix}{key}: {INEXPRESSIBLE_KEYS[key]}")
        elif key == "text_config" and isinstance(value, dict):
            faults += _inexpressible(value, f"{prefix}{key}.")
    return faults

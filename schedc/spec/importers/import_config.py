"""`import_config`: the entry point of the importers."""

import json
from pathlib import Path
from typing import Any

from schedc.errors import ConfigError, UserError
from schedc.spec.importers.config import Config, means_something
from schedc.spec.importers.keys import INEXPRESSIBLE_KEYS
from schedc.spec.importers.registry import FAMILIES, INEXPRESSIBLE_FAMILIES
from schedc.spec.model import ModelSpec
from schedc.validation import validate


def import_config(config: dict[str, Any] | str | Path, name: str | None = None) -> ModelSpec:
    """The spec of the model of a `config.json`, given as its data or its path.

    `name` defaults to the file's name, or to its folder's if the file is called config.json.
    Raises UserError for a file that cannot be read, ConfigError with every key a spec cannot express.
    """
    if isinstance(config, dict):
        return _import(config, "config", name or "model")
    path = Path(config)
    stem = path.resolve().parent.name if path.name == "config.json" else path.stem
    return _import(_read_json(path), str(path), name or stem.lower())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: is not a mapping of keys")
    return data


def _import(data: dict[str, Any], source: str, name: str) -> ModelSpec:
    model_type = data.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise ConfigError(source, [_family_fault(model_type), *_inexpressible(data)])
    config = Config(data, source)
    architectures = config.raw("architectures") or []
    for architecture in architectures if isinstance(architectures, list) else [architectures]:
        if not str(architecture).endswith("ForCausalLM"):
            config.refuse("architectures", f"{architecture}: only ForCausalLM models generate text")
    fields = FAMILIES[model_type](config, name)
    config.finish()
    spec, faults = validate(ModelSpec, fields)
    if spec is None:
        raise ConfigError(source, faults)
    return spec


def _family_fault(model_type: object) -> str:
    if model_type is None:
        return "model_type: missing, so the family is unknown"
    reason = INEXPRESSIBLE_FAMILIES.get(str(model_type))
    if reason:
        return f"model_type: {model_type}: {reason}"
    return f"model_type: {model_type} is not a family that can be imported; known: {', '.join(FAMILIES)}"


def _inexpressible(data: dict[str, Any], prefix: str = "") -> list[str]:
    faults = []
    for key, value in data.items():
        if key in INEXPRESSIBLE_KEYS and means_something(value):
            faults.append(f"{prefix}{key}: {INEXPRESSIBLE_KEYS[key]}")
        elif key == "text_config" and isinstance(value, dict):
            faults += _inexpressible(value, f"{prefix}{key}.")
    return faults

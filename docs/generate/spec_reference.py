"""The reference of model specs, from the pydantic models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schedc.spec.model import ModelSpec

ROOT = Path(__file__).parents[2]


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    schema = ModelSpec.model_json_schema()
    parts: dict[str, Any] = {"ModelSpec": schema, **dict(sorted(schema["$defs"].items()))}
    yield "# Model specs\n\nMade from `schedc/spec`. A spec is YAML of these keys."
    yield "`model_specs/` has those of the shipped models.\n"
    for name, part in parts.items():
        if "properties" not in part:
            continue
        yield f"## {name}\n"
        yield from ([part["description"] + "\n"] if part.get("description") else [])
        yield "| key | type | default | |\n|---|---|---|---|"
        required = set(part.get("required", ()))
        for key, value in part["properties"].items():
            default = "required" if key in required else f"`{_default(value)}`"
            yield f"| `{key}` | {_type(value)} | {default} | {_limits(value)}{_cell(value.get('description', ''))} |"
        yield ""


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for some in ("anyOf", "oneOf"):
        if some in value:
            return " or ".join(_type(one) for one in value[some])
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return " or ".join(f"`{one}`" for one in value["enum"])
    if value.get("type") == "array" and isinstance(value.get("items"), dict):
        return f"list of {_type(value['items'])}"
    return {"null": "null", "object": "mapping"}.get(value.get("type", "any"), str(value.get("type", "any")))


def _limits(value: dict[str, Any]) -> str:
    names = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    found = ", ".join(f"{sign} {value[key]}" for key, sign in names.items() if key in value)
    return f"{found}; " if found and value.get("description") else found


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return "null" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

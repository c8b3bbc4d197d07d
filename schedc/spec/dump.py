"""Write a model spec as YAML."""

from collections.abc import Iterable

from schedc.spec.model import ModelSpec
from schedc.yaml_text import format_yaml


def dump_spec(spec: ModelSpec, imported_from: str | None = None, left_out: Iterable[str] = ()) -> str:
    """YAML without the fields that have their default value; `parse_spec` of it gives an equal spec.

    `imported_from` names the config the spec was made from, in a comment on the first line; `left_out`, what of the
    config the spec does without, follows it.
    """
    header = "" if imported_from is None else f"# Imported by `schedc import` from {imported_from}\n"
    header += "".join(f"# {line}\n" for line in left_out)
    return header + format_yaml(spec.model_dump(mode="json", exclude_defaults=True))

"""`rope_theta` and `rope_scaling`, or `rope_parameters` in configs of transformers 5."""

from collections.abc import Iterable
from typing import Any

from schedc.spec.importers.config import Config

_LLAMA3 = {
    "factor": "factor",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
    "original_max_position_embeddings": "original_max_position",
}
_YARN = {
    "factor": "factor",
    "original_max_position_embeddings": "original_max_position",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "truncate": "truncate",
    "attention_factor": "attention_factor",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
}
LONGROPE = ("longrope", "su")
"""Two names of one scaling."""
SCALINGS = {"linear": {"factor": "factor"}, "llama3": _LLAMA3, "yarn": _YARN}
"""Per kind of scaling: its keys in a config → its fields in a spec."""


def rope(
    config: Config, *, default_theta: float, head_dim: int, default_part: float = 1.0, of_images: Iterable[str] = ()
) -> dict[str, Any]:
    """The rope of a mixer with half-rotation; `default_theta` and `default_part` of a head are the family's own.

    `of_images`: keys of the scaling that say which pairs turn by which position of a picture; text has one position.
    """
    key = "rope_parameters" if config.data.get("rope_parameters") is not None else "rope_scaling"
    scaling = config.raw(key)
    if key == "rope_parameters":
        config.must_be("rope_scaling", [scaling], "disagrees with rope_parameters")
    config.ignore("rope_parameters")
    if scaling is not None and not isinstance(scaling, dict):
        config.refuse(key, f"{scaling!r} is not a mapping of keys")
        scaling = None
    said = {inner: value for inner, value in (scaling or {}).items() if inner not in of_images}
    return _rope(config, key, said, default_theta, head_dim, default_part)


def ropes_by_layer_type(
    config: Config, *, default_thetas: dict[str, float], head_dim: int
) -> dict[str, dict[str, Any]] | None:
    """The rope of each type of layer, where `rope_parameters` has one each (transformers 5); else None."""
    key = "rope_parameters"
    given = config.data.get(key)
    if not isinstance(given, dict) or not given or not set(given) <= set(default_thetas):
        return None
    config.raw(key)
    config.must_be("rope_scaling", [given], "disagrees with rope_parameters")
    found = {}
    for kind, theta in default_thetas.items():
        scaling = given.get(kind)
        if not isinstance(scaling, dict):
            config.refuse(f"{key}.{kind}", "missing" if scaling is None else f"{scaling!r} is not a mapping of keys")
            scaling = {}
        found[kind] = _rope(config, f"{key}.{kind}", dict(scaling), theta, head_dim, 1.0)
    return found


def _rope(
    config: Config, key: str, scaling: dict[str, Any], default_theta: float, head_dim: int, default_part: float
) -> dict[str, Any]:
    theta = config.optional("rope_theta", float)
    inner_theta = _inner_number(config, key, scaling, "rope_theta")
    if None not in (theta, inner_theta) and theta != inner_theta:
        config.refuse("rope_theta", f"{theta:g} disagrees with {key}.rope_theta {inner_theta:g}")
    theta = inner_theta if theta is None else theta
    found: dict[str, Any] = {"theta": default_theta if theta is None else theta}
    factor = config.optional("partial_rotary_factor", float)
    inner_factor = _inner_number(config, key, scaling, "partial_rotary_factor")
    factor = inner_factor if factor is None else factor
    factor = default_part if factor is None else factor
    if factor != 1:
        found["rotary_dim"] = int(head_dim * factor)
    return found | _scaling(config, key, scaling)


def _inner_number(config: Config, key: str, scaling: dict[str, Any], inner: str) -> float | None:
    value = scaling.pop(inner, None)
    if value is None or type(value) in (int, float):
        return None if value is None else float(value)
    config.refuse(f"{key}.{inner}", f"{value!r} is not a number")
    return None


def _scaling(config: Config, key: str, scaling: dict[str, Any]) -> dict[str, Any]:
    kind = str(scaling.pop("rope_type", None) or scaling.get("type") or "default")
    scaling.pop("type", None)
    if kind in LONGROPE:
        return _longrope(config, key, scaling)
    if kind == "default":
        fields: dict[str, str] = {}
    elif kind in SCALINGS:
        fields = SCALINGS[kind]
    else:
        config.refuse(
            f"{key}.rope_type", f"scaling {kind!r} is not supported; known: {', '.join((*SCALINGS, LONGROPE[0]))}"
        )
        return {}
    for inner, value in scaling.items():
        if inner not in fields and value is not None:
            config.refuse(f"{key}.{inner}", f"not a key of {kind} scaling")
    if kind == "default":
        return {}
    for inner in ("factor", "original_max_position_embeddings"):
        if inner in fields and scaling.get(inner) is None:
            config.refuse(f"{key}.{inner}", f"missing; {kind} scaling needs it")
    values = {field: scaling[inner] for inner, field in fields.items() if scaling.get(inner) is not None}
    return {"scaling": {"kind": kind} | {field: _number(field, value) for field, value in values.items()}}


def _longrope(config: Config, key: str, scaling: dict[str, Any]) -> dict[str, Any]:
    """transformers takes the original length from the config itself if it has one, and the factor from both lengths."""
    known = {"short_factor", "long_factor", "factor", "attention_factor", "original_max_position_embeddings"}
    for inner, value in scaling.items():
        if inner not in known and value is not None:
            config.refuse(f"{key}.{inner}", "not a key of longrope scaling")
    most = config.required("max_position_embeddings", int)
    original = config.optional("original_max_position_embeddings", int)
    original = scaling.get("original_max_position_embeddings", most) if original is None else original
    if type(original) is not int or original < 2:
        config.refuse("original_max_position_embeddings", f"{original!r} is not a number of tokens above 1")
        original = most
    found: dict[str, Any] = {"kind": "longrope", "original_max_position": original}
    for inner in ("short_factor", "long_factor"):
        factors = scaling.get(inner)
        if not isinstance(factors, list) or not all(type(factor) in (int, float) for factor in factors):
            config.refuse(f"{key}.{inner}", "must be a list of numbers, one a pair of dimensions")
            return {}
        found[inner] = [float(factor) for factor in factors]
    factor = _inner_number(config, key, scaling, "factor")
    attention_factor = _inner_number(config, key, scaling, "attention_factor")
    found["factor"] = max(1.0, most / original if factor is None else factor)
    return {"scaling": found | ({} if attention_factor is None else {"attention_factor": attention_factor})}


def _number(field: str, value: Any) -> Any:
    """JSON writes 8.0 as 8 at times; a position stays whole."""
    return float(value) if type(value) is int and field != "original_max_position" else value

"""`quantization_config`: which module of a checkpoint is stored in which format, put together by weight family."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.modules import modules_of

FormatOf = Callable[[str], str | None]
"""Name of a module, such as model.layers.3.mlp.up_proj → its format; None: it is not quantised."""

_KEY = "quantization_config"
_GROUPS = (32, 64, 128)
_HEAD = "lm_head"
_WRAPPED = "language_model."


def quantization(config: Config, layers: list[dict[str, Any]]) -> dict[str, Any]:
    """The quantization of a spec with these runs of layers; empty for a checkpoint that is not quantised."""
    data = config.raw(_KEY)
    if data is None:
        return {}
    if not isinstance(data, dict):
        config.refuse(_KEY, f"{data!r} is not a mapping of keys")
        return {}
    own = Config(data, config.source, prefix=f"{config.prefix}{_KEY}.")
    method = own.raw("quant_method")
    found: dict[str, Any] = {}
    if not isinstance(method, str) or method not in _METHODS:
        own.refuse("quant_method", f"{method!r} is not supported; known: {', '.join(_METHODS)}")
    else:
        format_of = _METHODS[method](own)
        own.account()
        modules = _modules(layers, str(config.data.get("model_type")))
        found = {} if own.faults else _by_family(own, format_of, modules)
    config.faults += own.faults
    config.left_out += own.left_out
    return found


def _by_family(own: Config, format_of: FormatOf, by_family: dict[str, list[str]]) -> dict[str, Any]:
    formats: dict[str, str | None] = {}
    for family, modules in by_family.items():
        own_formats = {format_of(module) for module in modules}
        if len(own_formats) > 1:
            known = ", ".join(sorted(str(format or "not quantised") for format in own_formats))
            own.refuse("ignore", f"the {family} projections are stored in several formats ({known}); only one is known")
        formats[family] = next(iter(own_formats))
    head = format_of(_HEAD)
    found: dict[str, Any] = {family: format for family, format in formats.items() if format is not None}
    if len(found) == len(formats) and len(set(found.values())) == 1:
        found = {"weights": next(iter(found.values()))}
    return found | ({} if head is None else {"head": head})


def _modules(layers: list[dict[str, Any]], model_type: str) -> dict[str, list[str]]:
    """Every module with a projection, by weight family."""
    modules: dict[str, list[str]] = {}
    layer = 0
    for run in layers:
        for block in run["pattern"] * run["repeat"]:
            for family, module in modules_of(block, model_type):
                modules.setdefault(family, []).append(f"model.layers.{layer}.{module}")
            layer += 1
    return modules


def _mxfp4(own: Config) -> FormatOf:
    """`transformers` stores the experts so, and nothing else."""
    own.ignore("modules_to_not_convert")
    return lambda module: "mxfp4" if ".experts." in module else None


def _fp8(own: Config) -> FormatOf:
    """All projections but the head and what is not converted: a scale a tensor, or one a block."""
    own.must_be("fmt", ["e4m3", "float8_e4m3fn"], "only e4m3 is known")
    _activations(own, "activation_scheme", own.raw("activation_scheme"))
    blocks = own.raw("weight_block_size")
    if blocks not in (None, [128, 128]):
        own.refuse("weight_block_size", f"{blocks!r}: only blocks of 128×128, or none, are known")
    is_kept = matcher(_patterns(own, "modules_to_not_convert"))
    format = "fp8" if blocks is None else "fp8_block128"
    return lambda module: None if module == _HEAD or is_kept(module) else format


def _compressed_tensors(own: Config) -> FormatOf:
    _cache(own)
    own.ignore("format", "quantization_status", "global_compression_ratio", "version", "sparsity_config")
    return _groups(own)


def _modelopt(own: Config) -> FormatOf:
    _cache(own)
    own.ignore("producer", "quantized_layers")
    if own.raw("config_groups") is not None:
        own.ignore("quant_algo")
        return _groups(own)
    algorithm = own.raw("quant_algo")
    format = {"NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4", "FP8": "fp8"}.get(str(algorithm))
    if format is None:
        own.refuse("quant_algo", f"{algorithm!r} is not supported; known: NVFP4, W4A16_NVFP4, FP8")
    is_kept = matcher([pattern for key in ("ignore", "exclude_modules") for pattern in _patterns(own, key)])
    return lambda module: None if is_kept(module) else format


def _groups(own: Config) -> FormatOf:
    """`config_groups`: a format for the modules it targets, without those of `ignore`."""
    groups = own.raw("config_groups")
    if not isinstance(groups, dict) or not all(isinstance(group, dict) for group in groups.values()):
        own.refuse("config_groups", "must be a mapping of groups")
        groups = {}
    is_ignored = matcher(_patterns(own, "ignore"))
    formats: list[tuple[Callable[[str], bool], str | None]] = []
    for name, group in groups.items():
        _activations(own, f"config_groups.{name}.input_activations", group.get("input_activations"))
        targets = group.get("targets")
        if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
            own.refuse(f"config_groups.{name}.targets", "must be a list of modules")
            targets = []
        is_target = _everything if "Linear" in targets else matcher(targets)
        formats.append((is_target, _group_format(own, name, group.get("weights"))))

    def format_of(module: str) -> str | None:
        if is_ignored(module):
            return None
        return next((format for is_target, format in formats if is_target(module)), None)

    return format_of


def _group_format(own: Config, name: str, weights: Any) -> str | None:
    weights = weights if isinstance(weights, dict) else {}
    kind, bits, group = weights.get("type"), weights.get("num_bits"), weights.get("group_size")
    blocks, strategy = weights.get("block_structure"), weights.get("strategy")
    if weights.get("symmetric", True) and weights.get("actorder") is None and not weights.get("dynamic"):
        match kind, bits:
            case "int", 4 if group in _GROUPS:
                return f"int4_g{group}"
            case "int", 8 if strategy in ("channel", "tensor"):
                return "int8"
            case "float", 4 if group == 16:
                return "nvfp4"
            case "float", 4 if group == 32:
                return "mxfp4"
            case "float", 8 if blocks in ([128, 128], "128x128"):
                return "fp8_block128"
            case "float", 8 if strategy in (None, "tensor", "channel") and blocks is None:
                return "fp8"
    said = ", ".join(f"{key} {value}" for key, value in weights.items() if value is not None)
    own.refuse(f"config_groups.{name}.weights", f"no known format: {said or 'nothing'}")
    return None


def _everything(module: str) -> bool:
    return True


def _cache(own: Config) -> None:
    if own.raw("kv_cache_scheme") is not None:
        own.leave_out("kv_cache_scheme", "caches are stored in the spec's kv.dtype, whatever a checkpoint suggests")


def _activations(own: Config, key: str, scheme: Any) -> None:
    if scheme is not None:
        own.leave_out(key, "inputs of projections stay in the operand's dtype, they are not quantised")


def _patterns(own: Config, key: str) -> list[str]:
    found = own.raw(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(pattern, str) for pattern in found):
        own.refuse(key, "must be a list of modules")
        return []
    return found


def matcher(patterns: list[str]) -> Callable[[str], bool]:
    """Whether a module matches any of `patterns`: plain names, of which there may be hundreds, by look-up.

    In a multimodal model the text model's modules stand under `language_model`, before or behind `model`.
    """
    names = {pattern for pattern in patterns if not pattern.startswith("re:") and not set(pattern) & set("*?[")}
    plain = {name.replace(_WRAPPED, "", 1) for name in names}
    others = [pattern for pattern in patterns if pattern not in names]

    def found(module: str) -> bool:
        parts = module.split(".")
        spans = (".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1))
        if any(span in plain for span in spans):
            return True
        spellings = (module, f"{_WRAPPED}{module}", module.replace("model.", f"model.{_WRAPPED}", 1))
        return any(matches(pattern, spelling) for pattern in others for spelling in spellings)

    return found


def matches(pattern: str, module: str) -> bool:
    """`re:…` is a regular expression; a name stands for the modules it is, ends or contains as whole parts."""
    if pattern.startswith("re:"):
        try:
            return re.match(pattern.removeprefix("re:"), module) is not None
        except re.error:
            return False
    return f".{pattern}." in f".{module}." or fnmatchcase(module, pattern) or fnmatchcase(module, f"{pattern}.*")


_METHODS: dict[str, Callable[[Config], FormatOf]] = {
    "compressed-tensors": _compressed_tensors,
    "fp8": _fp8,
    "modelopt": _modelopt,
    "mxfp4": _mxfp4,
}

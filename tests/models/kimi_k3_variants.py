"""Specs one field away from that of Kimi K3, or of its scaled-down form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schedc.spec.model import ModelSpec

Change = Callable[[Any], Any]
Data = dict[str, Any]

RATIO = "fewer layers of delta attention to one of latent attention"


def variants(spec: ModelSpec) -> dict[str, ModelSpec]:
    """By what is different."""
    data = spec.model_dump(mode="json", exclude_none=True)
    return {name: ModelSpec.model_validate(change(data)) for name, change in CHANGES.items()}


def of_layers(part: str, kind: str, field: str, change: Change) -> Callable[[Data], Data]:
    """A field of every mixer or feed-forward of a kind; None leaves it out. A dot leads into a part."""

    def changed(block: Data) -> Data:
        if block[part]["kind"] != kind:
            return block
        *outer, last = field.split(".")
        inner = block[part][outer[0]] if outer else block[part]
        inner = {k: v for k, v in (inner | {last: change(inner.get(last))}).items() if v is not None}
        return block | {part: block[part] | {outer[0]: inner} if outer else inner}

    def applied(data: Data) -> Data:
        return data | {"layers": [run | {"pattern": list(map(changed, run["pattern"]))} for run in data["layers"]]}

    return applied


def of_period(field: str, change: Change) -> Callable[[Data], Data]:
    """`repeat` or `pattern` of the run that repeats the period."""

    def applied(data: Data) -> Data:
        first, period, *rest = data["layers"]
        return data | {"layers": [first, period | {field: change(period[field])}, *rest]}

    return applied


def of_model(part: str, field: str, change: Change) -> Callable[[Data], Data]:
    def applied(data: Data) -> Data:
        return data | {part: data[part] | {field: change(data[part].get(field))}}

    return applied


def without_latent_query(data: Data) -> Data:
    """The rank of the query's latent goes with the norm of it."""
    for field in ("q_norm", "q_rank"):
        data = of_layers("mixer", "mla", field, lambda _: None)(data)
    return data


CHANGES: dict[str, Callable[[Data], Data]] = {
    "fewer experts": of_layers("feed_forward", "moe", "experts", lambda n: n * 3 // 4),
    "more experts": of_layers("feed_forward", "moe", "experts", lambda n: n * 3 // 2),
    "half the chosen experts": of_layers("feed_forward", "moe", "top_k", lambda n: n // 2),
    "more chosen experts": of_layers("feed_forward", "moe", "top_k", lambda n: n + 3),
    "narrower latent": of_layers("feed_forward", "moe", "latent.width", lambda n: n * 3 // 4),
    "wider experts": of_layers("feed_forward", "moe", "width", lambda n: n * 3 // 2),
    "no shared experts": of_layers("feed_forward", "moe", "shared", lambda _: None),
    "wider first layer": of_layers("feed_forward", "dense", "width", lambda n: n * 5 // 4),
    "blocks of one period": of_model("residual", "block", lambda n: n // 2),
    "blocks that no period divides": of_model("residual", "block", lambda n: n - 1),
    "one block": of_model("residual", "block", lambda _: 1000),
    "half the layers": of_period("repeat", lambda n: n // 2),
    RATIO: of_period("pattern", lambda pattern: pattern[1:]),
    "more layers of delta attention": of_period("pattern", lambda pattern: [pattern[0], *pattern]),
    "softplus decay": of_layers("mixer", "kda", "decay", lambda _: {"kind": "softplus"}),
    "output gate of low rank": of_layers("mixer", "kda", "gate_rank", lambda _: 64),
    "shorter convolutions": of_layers("mixer", "kda", "conv", lambda n: n - 1),
    "more heads of delta attention": of_layers("mixer", "kda", "heads", lambda n: n * 4 // 3),
    "no output gate of latent attention": of_layers("mixer", "mla", "output_gate", lambda _: False),
    "queries of latent attention at once": without_latent_query,
    "experts in int8": of_model("quantization", "experts", lambda _: "int8"),
}

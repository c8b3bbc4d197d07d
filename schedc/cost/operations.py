"""Issue cycles of one computation, by its kind and attributes.

A dot takes its weights' bytes at the chip's rate of dots (for bf16 on tpu7x `4 · (K/16) · (N/256) / 2`) and then
drains the MXU; everything else is counted in vector registers of f32[8, 128]. The coefficients are fitted to what the
TPU compiler makes of these operations in generated kernels: `measured.yaml` is the measurement, `operations.yaml` the
fit, both made by `benchmarks/cost.py`. They are those of tpu7x; other chips differ in their dots, for the rest its
numbers stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedc.cost.figures import OperationsFile
from schedc.cost.router_work import inner_trips, route_features
from schedc.errors import SchedcError
from schedc.ir.program import Attribute, Compute
from schedc.target.products import ProductTable
from schedc.target.target import Target
from schedc.validation import validate
from schedc.yaml_text import parse_yaml

LANES, SUBLANES = 128, 8
WEIGHT_BYTES = {"bf16": 2.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "int8": 1.0, "int4": 0.5, "fp4_e2m1": 0.5}
ROWS_OF: Mapping[str, tuple[str, ...]] = {
    "zero": ("out",),
    "move": ("out",),
    "pack_wire": ("x",),
    "sum_wire": ("blocks",),
    "unpack_wire": ("out",),
    "pack_parts": ("out",),
    "unpack_parts": ("blocks",),
    "sum_scaled": ("blocks",),
    "merge_tokens": ("chunks",),
}
"""Operands whose rows are among the attributes, as `<operand>_rows`: of operations that are not told a shape."""

Features = dict[str, float]
"""What the cycles of an operation are linear in, beside a constant."""


@dataclass(frozen=True)
class Work:
    """One computation: its attributes, the names of its operands, and the chip's rates of dots."""

    attributes: Mapping[str, Attribute]
    operands: frozenset[str]
    dot_rates: Mapping[str, float]
    """Weight bytes a cycle, by dtype of the weights."""
    drain: float
    """Cycles until the MXU has given its last result."""
    products: ProductTable | None = None

    @classmethod
    def of(cls, op: Compute, target: Target) -> Work:
        attributes = dict(op.attributes)
        attributes |= {f"{o.name}_rows": o.region.rows for o in op.operands if o.name in ROWS_OF.get(op.kind, ())}
        operands = frozenset(operand.name for operand in op.operands)
        rates = {str(dtype): rate for dtype, rate in target.cost.dot_bytes_per_cycle.items()}
        return cls(attributes, operands, rates, target.cost.dot_drain_cycles, ProductTable.of(target))

    def __getitem__(self, name: str) -> int:
        return int(self.attributes[name])

    def product_slope(self) -> float | None:
        """Cycles a weight of the product that the computation names, for bf16 rows; None if it is not in the table."""
        product = str(self.attributes.get("product", ""))
        if self.products is None or product.endswith("_direct"):
            return None
        return self.products.cycles_per_weight(product, int(self.attributes.get("sequences", 1)))

    def panels(self, columns: str) -> int:
        return -(-self[columns] // LANES)

    def registers(self, panels: int) -> float:
        """Vector registers of f32[rows, panels * 128]."""
        return panels * self["rows"] / SUBLANES


def of_columns(columns: str) -> Callable[[Work], Features]:
    return lambda work: {"registers": work.registers(work.panels(columns))}


def of_norm(work: Work) -> Features:
    registers, layer = work.registers(work.panels("columns")), work.attributes["kind"] == "layer"
    return {"registers": registers, "layer": float(layer), "layer_registers": registers * layer}


def of_mixture(work: Work) -> Features:
    """Every source is gone through twice: for its score, and for its share. The norm is that of the mixture."""
    registers = work.registers(work.panels("columns"))
    return {"registers": registers, "source_registers": registers * work["sources"]}


def of_mixture_of_one(work: Work) -> Features:
    """A row that stands for all of its padded ones takes a register each 8 panels, and its output one a panel."""
    panels = work.panels("columns")
    return {"registers": float(panels), "source_registers": panels / SUBLANES * work["sources"]}


def of_dot(work: Work) -> Features:
    """A dtype without a rate is counted by its ratio to bf16, which is then the coefficient of `dot_<dtype>`.

    bf16 rows and weights in a quantised format take what the table of products says.
    """
    dtype, weights = str(work.attributes["dtype"]), work["depth"] * work["panels"] * LANES
    slope = work.product_slope() if dtype == "bf16" else None
    if slope is not None:
        return {"dot": weights * slope, "drain": work.drain}
    name, rated = ("dot", dtype) if dtype in work.dot_rates else (f"dot_{dtype}", "bf16")
    cycles = weights * WEIGHT_BYTES[rated] / work.dot_rates[rated]
    return {name: cycles, "drain": work.drain}


def of_panels(work: Work) -> Features:
    return {"registers": work.registers(work["panels"])}


def of_split_heads(work: Work) -> Features:
    registers = (work["heads"] + 2 * work["kv_heads"]) * work.registers(work.panels("head_dim"))
    normed = work["heads"] + work["kv_heads"] if "norm_kind" in work.attributes else 0
    narrow = work["head_dim"] % LANES != 0
    return {"registers": registers, "narrow_registers": registers * narrow, "normed_heads": float(normed)}


def of_squares(work: Work) -> Features:
    return {"registers": (work["heads"] + work["kv_heads"]) * work.registers(work.panels("head_dim"))}


def of_attend(work: Work) -> Features:
    """A pair is one sequence and kv head: a dot with its keys, a softmax, a dot with its values."""
    pairs = work["sequences"] * work["kv_heads"]
    scores = pairs * -(-work["group"] // SUBLANES) * work["tokens"] / LANES
    tiles = pairs * work.panels("head_dim") * work["tokens"] / LANES
    return {
        "pairs": float(pairs),
        "score_registers": scores,
        "tiles": tiles,
        "f32_tiles": tiles * (work.attributes["dtype"] == "f32"),
        "later": float(not work["first"]),
    }


def of_attend_tokens(work: Work) -> Features:
    """A pair is a kv head, which the queries of all rows meet together."""
    scores = work["kv_heads"] * work["group"] * work["rows"] / SUBLANES * work["tokens"] / LANES
    tiles = work["kv_heads"] * work.panels("head_dim") * work["tokens"] / LANES
    return {
        "pairs": float(work["kv_heads"]),
        "score_registers": scores,
        "tiles": tiles,
        "f32_tiles": tiles * (work.attributes["dtype"] == "f32"),
        "later": float(not work["first"]),
    }


def of_join_heads(work: Work) -> Features:
    registers = work["heads"] * work.registers(work.panels("head_dim"))
    return {"registers": registers, "narrow_registers": registers * (work["head_dim"] % LANES != 0)}


def of_wire(operand: str) -> Callable[[Work], Features]:
    """Registers of words; to or from bf16 each is two of f32, or half of one. `added`: blocks, one after the other."""

    def features(work: Work) -> Features:
        registers = work[f"{operand}_rows"] / SUBLANES
        added = float(work.attributes.get("count", 0)) if operand == "blocks" else 0.0
        if work.attributes.get("height") and operand != "blocks" and "members" not in work.attributes:
            registers *= work["used"] / work["height"]
        narrow = registers * (work.attributes["wire"] == "bf16")
        return {"registers": registers, "bf16_registers": narrow} | ({"added": added} if added else {})

    return features


def of_each_head(work: Work) -> Features:
    """A dot a head; they share one drain."""
    return {name: amount * (1 if name == "drain" else work["heads"]) for name, amount in of_dot(work).items()}


def of_attend_latent(work: Work) -> Features:
    """A pair is a sequence: dots of all heads with the tile, and with the latents of it."""
    tiles = work["sequences"] * work["panels"] * work["tokens"] / LANES
    return {
        "pairs": float(work["sequences"]),
        "score_registers": work["sequences"] * -(-work["heads"] // SUBLANES) * work["tokens"] / LANES,
        "tiles": tiles,
        "f32_tiles": tiles * (work.attributes["dtype"] == "f32"),
        "later": float(not work["first"]),
    }


def of_attend_latent_tokens(work: Work) -> Features:
    """The same of one sequence, with the queries of all rows."""
    tiles = work["panels"] * work["tokens"] / LANES
    return {
        "pairs": 1.0,
        "score_registers": work["heads"] * work["rows"] / SUBLANES * work["tokens"] / LANES,
        "tiles": tiles,
        "f32_tiles": tiles * (work.attributes["dtype"] == "f32"),
        "later": float(not work["first"]),
    }


def of_attend_expanded(work: Work) -> Features:
    """A pair is a sequence and eight heads: dots with each head's keys, one softmax, a dot with all their values."""
    pairs = work["sequences"] * -(-work["heads"] // SUBLANES)
    panels = work["heads"] * (work.panels("head_dim") + work.panels("value_dim"))
    tiles = work["sequences"] * panels * work["tokens"] / LANES
    return {
        "pairs": float(pairs),
        "score_registers": pairs * work["tokens"] / LANES,
        "tiles": tiles,
        "f32_tiles": tiles * (work.attributes["dtype"] == "f32"),
        "later": float(not work["first"]),
    }


def of_attend_expanded_tokens(work: Work) -> Features:
    """A pair is a head, which the queries of all rows meet together."""
    tiles = work["heads"] * (work.panels("head_dim") + work.panels("value_dim")) * work["tokens"] / LANES
    return {
        "pairs": float(work["heads"]),
        "score_registers": work["heads"] * work["rows"] / SUBLANES * work["tokens"] / LANES,
        "tiles": tiles,
        "f32_tiles": tiles * (work.attributes["dtype"] == "f32"),
        "later": float(not work["first"]),
    }


def of_latent_queries(work: Work) -> Features:
    return {"registers": work["heads"] * work.registers(work.panels("nope_dim") + work.panels("rope_dim"))}


def of_gather_queries(work: Work) -> Features:
    return {"registers": work["heads"] * work.registers(work.panels("rank") + work.panels("rope_dim"))}


def of_expanded_heads(*columns: str) -> Callable[[Work], Features]:
    """`spilled`: those beyond what eight heads have, all of which are alive at once."""

    def features(work: Work) -> Features:
        each = work.registers(sum(work.panels(part) for part in columns))
        return {"registers": work["heads"] * each, "spilled": max(0, work["heads"] - 8) * each}

    return features


def of_heads(columns: str) -> Callable[[Work], Features]:
    return lambda work: {"registers": work["heads"] * work.registers(work.panels(columns))}


def of_join_values(work: Work) -> Features:
    registers = work["heads"] * work.registers(work.panels("value_dim"))
    return {"registers": registers, "gated_registers": registers * ("gate" in work.operands)}


def of_sections(work: Work) -> Features:
    """Rows of every device, which lie beside each other where all heads are together: in whole registers, or not."""
    rows = int(work.attributes.get("used", 0)) or work["block"]
    registers = float(work["devices"] * work["sections"] * -(-rows // SUBLANES))
    return {"registers": registers, "narrow_registers": registers * (rows % SUBLANES != 0)}


def of_softmaxes(work: Work) -> Features:
    """Registers of the softmaxes, of this device's tiles and those of others."""
    panels = work["sequences"] * (work["panels"] + 2)
    return {"registers": (work["count"] + 1) * panels * work["block"] / SUBLANES}


def of_route(work: Work) -> Features:
    return route_features(work.attributes, work.operands)


def of_delta_rule(work: Work) -> Features:
    """Registers of the states; columns of 128 lanes that are made of keys, queries and decays, `keyed` before all."""
    heads, keys, keyed = work["value_heads"], work["key_heads"], work.attributes["decay_of"] == "keys"
    columns = 2 * keys + (heads if keyed else 0)
    return {"registers": heads * work["key_rows"] / SUBLANES, "columns": float(columns), "keyed": float(keyed)}


FEATURES: Mapping[str, Callable[[Work], Features]] = {
    "zero": lambda work: {"registers": work["out_rows"] / SUBLANES},
    "move": lambda work: {"registers": work["out_rows"] / SUBLANES},
    "embed": of_panels,
    "norm": of_norm,
    "norm_in_place": of_norm,
    "pack_wire": of_wire("x"),
    "sum_wire": of_wire("blocks"),
    "unpack_wire": of_wire("out"),
    "pack_parts": of_wire("out"),
    "unpack_parts": of_wire("blocks"),
    "sum_scaled": of_wire("blocks"),
    "operand_of_part": lambda work: {"registers": float(work["each"])},
    "as_operand": of_columns("columns"),
    "residual_add": of_columns("columns"),
    "residual_add_norm": of_norm,
    "mixed_norm": of_mixture,
    "mixed_norm_of_one": of_mixture_of_one,
    "append_sum": of_columns("columns"),
    "append_sum_of_one": of_columns("columns"),
    "matmul": of_dot,
    "head": of_dot,
    "gated": of_columns("width"),
    "plain": of_columns("width"),
    "split_heads": of_split_heads,
    "sum_squares": of_squares,
    "merge_newest": lambda work: {"panels": float(work["panels"])},
    "merge_tokens": lambda work: {"panels": work["chunks_rows"] / SUBLANES},
    "attend": of_attend,
    "attend_tokens": of_attend_tokens,
    "join_heads": of_join_heads,
    "latent_token": lambda work: {"registers": work.registers(work.panels("rank") + work.panels("rope_dim"))},
    "latent_queries": of_latent_queries,
    "each_head": of_each_head,
    "pack_panels": of_panels,
    "join_panels": of_panels,
    "gather_queries": of_gather_queries,
    "attend_latent": of_attend_latent,
    "attend_latent_tokens": of_attend_latent_tokens,
    "expanded_latent": lambda work: {"registers": work.registers(work.panels("rank") + work.panels("rope_dim"))},
    "expanded_token": of_expanded_heads("nope_dim", "rope_dim", "value_dim"),
    "expanded_queries": of_expanded_heads("nope_dim", "rope_dim"),
    "attend_expanded": of_attend_expanded,
    "attend_expanded_tokens": of_attend_expanded_tokens,
    "join_expanded": of_join_values,
    "join_queries": of_sections,
    "part_softmaxes": of_sections,
    "combine_softmaxes": of_softmaxes,
    "latent_outputs": of_heads("rank"),
    "join_values": of_join_values,
    "by_sequence": lambda work: {"registers": work["sequences"] * work["stride"] / SUBLANES},
    "delta_gates": lambda work: {"registers": work.registers(work["heads"])},
    "short_conv": lambda work: {"registers": work["conv"] * work["stride"] / SUBLANES},
    "delta_rule": of_delta_rule,
    "delta_outputs": lambda work: {"registers": work.registers(work["heads"])},
    "route": of_route,
    "expert_weight": lambda work: {"registers": work.registers(1)},
    "add_weighted": of_columns("columns"),
    "gate_rows": of_columns("columns"),
    "weigh_operand": of_columns("columns"),
    "head_start": lambda work: {"registers": work["rows"] / SUBLANES},
    "head_finish": lambda work: {"registers": work["rows"] / SUBLANES},
}


INNER_TRIPS: Mapping[str, Callable[[Work], float]] = {"route": lambda work: inner_trips(work.attributes)}
"""Trips of a loop inside an operation beyond the first, which is all that its bundles count."""

INNER_TRIP_CYCLES = 9.0
"""Of a short scalar loop that looks a flag up and sets it: FACTS, the list of the distinct experts."""

UNMEASURED: Mapping[str, str] = {
    "norm_in_place": "norm",
    "residual_add_norm": "norm",
    "sum_squares": "residual_add",
    "weigh_operand": "residual_add",
    "merge_tokens": "merge_newest",
    "attend_tokens": "attend",
    "attend_latent_tokens": "attend_latent",
}
"""Kinds that no measured kernel has, and the kind whose formula stands in."""


@dataclass(frozen=True)
class CycleTable:
    """The fitted formulas, for the dots of one chip."""

    file: OperationsFile
    target: Target

    @classmethod
    def on(cls, target: Target) -> CycleTable:
        return cls(operations_file(), target)

    def issue(self, kind: str) -> float:
        """Cycles of `start`, `wait`, `signal`, `scalar`, `when`, and of one trip of a `loop`."""
        return self.file.issue[kind].value

    def cycles(self, op: Compute) -> tuple[float, str | None]:
        """Issue cycles of a computation; 0 and a note for what no formula is known for."""
        stand_in = UNMEASURED.get(op.kind) if op.kind not in self.file.kinds else None
        formula, features = self.file.kinds.get(stand_in or op.kind), FEATURES.get(op.kind)
        if formula is None or features is None:
            return 0.0, f"{op.kind}: no cycles are known, counted as 0"
        work = Work.of(op, self.target)
        found = features(work)
        unknown = sorted(name for name, amount in found.items() if amount and name not in formula.per)
        note = f"{op.kind}: not measured, counted as {stand_in}" if stand_in else None
        note = f"{op.kind}: {', '.join(unknown)} not measured, counted as 0" if unknown else note
        cycles = formula.base + sum(formula.per.get(name, 0.0) * amount for name, amount in found.items())
        return max(0.0, cycles + self.inner_cycles(op)), note

    def inner_cycles(self, op: Compute) -> float:
        """Cycles of the trips of a loop inside of it after the first."""
        trips = INNER_TRIPS.get(op.kind)
        return 0.0 if trips is None else INNER_TRIP_CYCLES * trips(Work.of(op, self.target))


@cache
def operations_file() -> OperationsFile:
    path = Path(__file__).with_name("operations.yaml")
    file, faults = validate(OperationsFile, parse_yaml(path.read_text(encoding="utf-8")))
    if file is None:
        raise SchedcError("\n".join([f"{path.name}:", *(f"  {fault}" for fault in faults)]))
    return file

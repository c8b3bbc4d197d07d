"""Bytes of HBM a device, by weight family, cache and output, against what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from schedc.errors import CheckFailed, SchedcError, SpecError
from schedc.ir.program import ROW_BYTES, Array
from schedc.lower.graph import Grain, StepShape
from schedc.lower.step import StepLowering
from schedc.placement.rules import PlacementRules
from schedc.placement.table import Held, held
from schedc.schedule.build import Schedule, kv_tokens
from schedc.spec.latent_cache import other_latent_caches, with_latent_cache
from schedc.spec.model import ModelSpec
from schedc.spec.window_cache import sees_windows, with_window_cache
from schedc.target.target import Target, parse_target
from schedc.weights.layout import Layout

IN_TURN = "kv: sequence"
"""The rule by which devices that read the same cache have its tiles in turn."""

SMALL = "norms, biases"
"""What is on every device and belongs to no family of projections; tables of rotations are among it."""

_FAMILIES = {
    "attn.": "attention",
    "mlp.experts": "experts",
    "mlp.shared": "shared",
    "mlp.router": "router",
    "mlp.": "dense",
}
"""By the beginning of the weights' names; the longest beginning counts."""


@dataclass(frozen=True)
class FamilyBytes:
    """`once`: of one copy without padding; `device`: what each device keeps."""

    family: str
    once: int
    device: int
    held: tuple[Held, ...]

    def over(self, devices: int) -> float:
        """How much more all devices have than one copy takes: copies and padding."""
        return self.device * devices / self.once - 1.0 if self.once else 0.0


@dataclass(frozen=True)
class PlacementReport:
    """Bytes; `limit` is what a device has left for arrays."""

    target: str
    devices: int
    families: tuple[FamilyBytes, ...]
    caches: Mapping[str, int]
    cache_statements: tuple[Held, ...]
    outputs: int
    limit: int

    @property
    def weights(self) -> int:
        return sum(family.device for family in self.families)

    @property
    def total(self) -> int:
        return self.weights + sum(self.caches.values()) + self.outputs

    def to_dict(self) -> dict[str, Any]:
        families = {
            family.family: asdict(family) | {"over": round(family.over(self.devices), 4)} for family in self.families
        }
        families |= {"cache": {"held": [asdict(statement) for statement in self.cache_statements]}}
        sums = {"weights": self.weights, "caches": dict(self.caches), "outputs": self.outputs, "total": self.total}
        return {"target": self.target, "devices": self.devices, "families": families, **sums, "limit": self.limit}


def placement_report(
    spec: ModelSpec, shape: StepShape, target: Target, layouts: Sequence[Layout], arrays: Iterable[Array]
) -> PlacementReport:
    """`layouts` and `arrays` are those of the kernel."""
    once = _by_family(_least(spec, replace(shape, devices=1, placement=PlacementRules()))[0])
    device = _by_family(layouts)
    statements = held(spec, shape.devices, shape.placement)
    families = tuple(
        FamilyBytes(family, once[family], device[family], tuple(s for s in statements if s.family == family))
        for family in device
    )
    arrays = list(arrays)
    caches = {array.name: array.rows * ROW_BYTES for array in arrays if array.role == "state"}
    outputs = sum(array.rows * ROW_BYTES for array in arrays if array.role == "output")
    limit = target.capability.hbm_usable_bytes
    of_caches = tuple(statement for statement in statements if statement.family == "cache")
    return PlacementReport(target.name, shape.devices, families, caches, of_caches, outputs, limit)


def _by_family(layouts: Iterable[Layout]) -> dict[str, int]:
    found: dict[str, int] = {}
    for layout in layouts:
        family = family_of(layout)
        found[family] = found.get(family, 0) + layout.rows * ROW_BYTES
    return found


def family_of(layout: Layout) -> str:
    """The weight family of an array."""
    if layout.form == "row_table":
        return "embedding"
    if layout.form in ("vectors", "rope_table"):
        return SMALL
    weight = next(_weights(layout))
    beginnings = sorted((b for b in _FAMILIES if weight.startswith(b)), key=len)
    return _FAMILIES[beginnings[-1]] if beginnings else "head"


def _weights(layout: Layout) -> Iterator[str]:
    """Names of the weights whose columns it has."""
    for value in vars(layout).values():
        for part in value if isinstance(value, tuple) else ():
            if hasattr(part, "weight"):
                yield part.weight


def smallest_target(spec: ModelSpec, shape: StepShape, names: Sequence[str], devices: int | None = None) -> Target:
    """The first of the targets, smallest first, that has `devices`, or on as few of its devices as can be room for the
    model in HBM; all devices of the last if none has.

    Raises TargetError, and CheckFailed for a model that all devices of that target together do not hold in any format.
    """
    for name in names:
        target = parse_target(name)
        used = _fewest_devices(spec, shape, target) if devices is None else devices
        if used is not None and used <= target.devices:
            break
    found = parse_target(name, target.devices if used is None else used)
    _require_parameters(spec, found)
    return found


LEAST_BITS = 4
"""Of a weight, in any format."""


def _parameter_bytes(spec: ModelSpec) -> int:
    return sum(spec.parameter_counts().values()) * LEAST_BITS // 8


def _require_parameters(spec: ModelSpec, target: Target) -> None:
    """Known without lowering anything, which takes long for what is much too large."""
    taken, limit = _parameter_bytes(spec), target.capability.hbm_usable_bytes
    if taken > limit * target.devices:
        raise CheckFailed(
            f"{spec.name} does not fit the HBM of {target.name} on all {target.devices} of its devices: its parameters "
            f"take {taken:,} bytes in {LEAST_BITS} bits each, {limit * target.devices:,} are left for arrays\n"
            f"  would fit at best: a topology of {-(-taken // limit):,} devices"
        )


def _fewest_devices(spec: ModelSpec, shape: StepShape, target: Target) -> int | None:
    """The smallest divisor of the target's devices that has room for the model in HBM.

    Numbers of devices that the model cannot be divided over are passed by.
    """
    limit = target.capability.hbm_usable_bytes
    for devices in _divisors(target.devices):
        try:
            if (
                _parameter_bytes(spec) <= limit * devices
                and least_bytes(spec, replace(shape, devices=devices)) <= limit
            ):
                return devices
        except SpecError:
            continue
    return None


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _least(spec: ModelSpec, shape: StepShape) -> tuple[list[Layout], int]:
    """The weights of a device, and the rows of its caches, with no padding to tiles."""
    lowering = StepLowering(spec, shape)
    streams = lowering.streams()
    graph = lowering.graph(Grain({stream.name: 1 for stream in streams}, kv_tokens(lowering)[-1]))
    states = sum(array.rows for array in graph.declarations.arrays if array.role == "state")
    return [*(stream.layout(1) for stream in streams), *graph.declarations.layouts], states


def least_bytes(spec: ModelSpec, shape: StepShape) -> int:
    """Of weights and caches a device, without padding to tiles. Raises SpecError for what cannot be divided so."""
    layouts, states = _least(spec, shape)
    return (sum(layout.rows for layout in layouts) + states) * ROW_BYTES


def require_hbm(
    spec: ModelSpec,
    shape: StepShape,
    target: Target,
    made: Schedule,
    otherwise: Callable[[ModelSpec, StepShape], Schedule],
) -> None:
    """Raises CheckFailed with the numbers, and the smallest changes that fit. `otherwise` makes others."""
    if _taken(made) <= target.capability.hbm_usable_bytes:
        return
    report = placement_report(spec, shape, target, made.layouts, made.program.arrays)
    parts = {family.family: family.device for family in report.families}
    parts |= {"caches": sum(report.caches.values()), "outputs": report.outputs}
    largest = sorted(parts.items(), key=lambda part: -part[1])
    found = remedies(spec, shape, target, otherwise)
    lines = [
        f"{spec.name} does not fit the HBM of {target.name} on {shape.devices} of its devices: {report.total:,} bytes "
        f"a device, {report.limit:,} are left for arrays ({report.total - report.limit:,} too many)",
        *(f"  {name}: {size:,} bytes" for name, size in largest if size * 100 >= report.total),
        f"  would fit: {found[0]}"
        if found
        else "  no number of its devices, context or rows fits: take a larger topology",
        *(f"         or: {change}" for change in found[1:]),
    ]
    raise CheckFailed("\n".join(lines), details={"placement": report.to_dict()})


def _taken(made: Schedule) -> int:
    """Bytes a device of all arrays."""
    return sum(array.rows for array in made.program.arrays) * ROW_BYTES


def remedies(
    spec: ModelSpec, shape: StepShape, target: Target, otherwise: Callable[[ModelSpec, StepShape], Schedule]
) -> list[str]:
    """Of every single change, the smallest that fits: of placement and cache first, which take nothing away."""

    def fits(other: StepShape, of: ModelSpec = spec) -> bool:
        try:
            return _taken(otherwise(of, other)) <= target.capability.hbm_usable_bytes
        except SchedcError:
            return False

    in_turn = replace(shape, placement=shape.placement.model_copy(update={"kv": "sequence"}))
    turned = shape.devices > 1 and shape.placement.kv != "sequence" and fits(in_turn)
    rings = (
        sees_windows(spec) and spec.kv.layout == "contiguous" and spec.kv.window != "ring"
        and fits(shape, with_window_cache(spec, "ring"))
    )  # fmt: skip
    caches = (cache for cache in other_latent_caches(spec) if fits(shape, with_latent_cache(spec, cache)))
    larger = (n for n in _divisors(target.devices) if n > shape.devices)
    more = next((n for n in larger if fits(replace(shape, devices=n))), None)
    context = _largest(shape.context, lambda n: fits(replace(shape, context=n)))
    rows = _largest(shape.rows, lambda n: fits(replace(shape, rows=n)))
    return [
        *([f"{IN_TURN} in the rules of --placement"] if turned else []),
        *(["--window-cache ring"] if rings else []),
        *(f"--latent-cache {cache}" for cache in caches),
        *([f"--devices {more}"] if more else []),
        *([f"--context {context}"] if context else []),
        *([f"--rows {rows}"] if rows else []),
    ]


def _largest(below: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 1 to `below` - 1 that fits, where smaller ones do too; 0 if none does."""
    low, high = 0, below - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low

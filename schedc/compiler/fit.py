"""What to say when a schedule does not fit VMEM: the clash, the missing bytes, and a smaller setting that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schedc.errors import CheckFailed, SchedcError
from schedc.ir.allocate import DoesNotFit, allocate
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.model import ModelSpec
from schedc.target.target import Target

Settings = Mapping[str, int | float]


def does_not_fit(
    error: DoesNotFit, spec: ModelSpec, shape: StepShape, target: Target, policy: str, settings: Settings | None
) -> CheckFailed:
    """The error to show: found by trying smaller settings, the first that fits is named."""
    lines = [
        f"{spec.name} does not fit the VMEM of {target.name} under policy {policy}: "
        f"{error.missing_bytes} bytes too many ({error.needed_bytes} of {error.capacity_bytes})",
        f"  at {error.where}" + ("" if error.proven else " (the search for a tighter packing ran out of time)"),
        *(f"  {clash.buffer} in pool {clash.pool}: {clash.bytes} bytes" for clash in error.clashes),
    ]
    lines.append(f"  {_remedy(spec, shape, target, policy, settings)}")
    return CheckFailed("\n".join(lines))


def _remedy(spec: ModelSpec, shape: StepShape, target: Target, policy: str, settings: Settings | None) -> str:
    for option, smaller_policy, smaller_settings, smaller_shape in _smaller(shape, policy, dict(settings or {})):
        try:
            made = schedule(spec, smaller_shape, target, smaller_policy, smaller_settings)
            allocate(made.program, capacity_rows(target), seconds=1.0)
        except (DoesNotFit, SchedcError):
            continue
        return f"would fit: {option}"
    return "no smaller setting of the built-in policies fits: use a target with more VMEM or a smaller model"


def _smaller(
    shape: StepShape, policy: str, settings: dict[str, int | float]
) -> Iterator[tuple[str, str, dict[str, int | float], StepShape]]:
    """(how to ask for it, policy, settings, shape), the smallest change first."""
    for depth in (6, 4, 3, 2):
        for slot in (2.0, 1.0, 0.5, 0.25):
            smaller = settings | {"depth": depth, "slot_mib": slot}
            yield f"--set depth={depth} --set slot_mib={slot:g}", policy, smaller, shape
    for slot in (1.0, 0.25):
        yield f"--policy just_in_time --set slot_mib={slot:g}", "just_in_time", {"slot_mib": slot}, shape
    for rows in (8, 4, 2, 1):
        if rows < shape.rows:
            one = StepShape(rows, shape.context, shape.logits)
            yield f"--rows {rows} --policy just_in_time --set slot_mib=0.25", "just_in_time", {"slot_mib": 0.25}, one

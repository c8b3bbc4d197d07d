"""Why a model does not fit, in HBM and in VMEM, and what would; or, if it does, how much is left and what fills it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schedc.compiler.pipeline import Request, build
from schedc.compiler.placement import placement_report
from schedc.errors import CheckFailed
from schedc.inspect.subject import ModelSubject
from schedc.ir.live import live_ranges
from schedc.ir.program import ROW_BYTES, Program
from schedc.schedule.build import capacity_rows
from schedc.weights.layout import Layout


@dataclass(frozen=True)
class Filling:
    """A buffer, or a family of weights, and its bytes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class FitAnswer:
    """`refusal` is what a compilation says, with the changes that would fit; empty if it fits."""

    fits: bool
    refusal: str
    hbm_bytes: int = 0
    hbm_limit: int = 0
    hbm: tuple[Filling, ...] = ()
    vmem_bytes: int = 0
    vmem_limit: int = 0
    vmem: tuple[Filling, ...] = ()
    """What is live where most is."""
    fullest: str = ""

    @property
    def answer(self) -> list[str]:
        if not self.fits:
            return self.refusal.splitlines()
        hbm, vmem = self.hbm_limit - self.hbm_bytes, self.vmem_limit - self.vmem_bytes
        return [
            f"it fits: HBM {self.hbm_bytes:,} of {self.hbm_limit:,} bytes a device ({hbm:,} left), "
            f"VMEM {self.vmem_bytes:,} of {self.vmem_limit:,} ({vmem:,} left)",
            f"HBM: {_listed(self.hbm)}",
            f"VMEM is fullest in {self.fullest}: {_listed(self.vmem)}",
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "hbm": [vars(one) for one in self.hbm],
            "vmem": [vars(one) for one in self.vmem],
            "answer": self.answer,
        }


def explain_fit(request: Request) -> FitAnswer:
    """Schedules and allocates; nothing is proven. What does not fit is found out with what would."""
    try:
        made, program = build(request)
    except CheckFailed as refusal:
        return FitAnswer(False, str(refusal))
    return _fits(request, made.layouts, program)


def explain_folder(subject: ModelSubject) -> FitAnswer:
    """Of the program that lies there, which fits; what it was scheduled with is not needed any more."""
    return _fits(subject.request, subject.layouts, subject.program)


def _fits(request: Request, layouts: Sequence[Layout], program: Program) -> FitAnswer:
    report = placement_report(request.spec, request.shape, request.target, layouts, program.arrays)
    hbm = {family.family: family.device for family in report.families}
    hbm |= {"caches": sum(report.caches.values()), "outputs": report.outputs}
    where, live = _fullest(program)
    return FitAnswer(
        True,
        "",
        report.total,
        report.limit,
        _sorted(hbm),
        sum(pool.rows for pool in program.pools) * ROW_BYTES,
        capacity_rows(request.target) * ROW_BYTES,
        _sorted(live),
        where,
    )


def _fullest(program: Program) -> tuple[str, dict[str, int]]:
    """The operation with most bytes live, as its phase, and what is live there."""
    from schedc.inspect.numbered import Numbered

    sizes = {buffer.name: buffer.rows * buffer.slots * ROW_BYTES for buffer in program.buffers}
    ranges = live_ranges(program)
    count = program.size
    totals = [0] * (count + 1)
    for live in ranges:
        for first, end in live.spans:
            for at in range(first, end):
                totals[at] += sizes[live.buffer]
    at = max(range(len(totals)), key=lambda index: totals[index])
    inside = {live.buffer for live in ranges if any(first <= at < end for first, end in live.spans)}
    numbered = Numbered(program)
    phase = numbered.ops[min(at, count - 1)].phase or "the edge of a loop"
    return phase, {name: sizes[name] for name in inside}


def _sorted(sizes: dict[str, int]) -> tuple[Filling, ...]:
    return tuple(Filling(name, size) for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _listed(fillings: tuple[Filling, ...], most: int = 6) -> str:
    rest = sum(one.bytes for one in fillings[most:])
    more = [f"{len(fillings) - most} more {rest:,}"] if rest else []
    return ", ".join([*(f"{one.name} {one.bytes:,}" for one in fillings[:most]), *more])

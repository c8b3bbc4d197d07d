"""The TPU compiler's final bundles of a kernel, phase by phase: how full each unit is, what is empty, what is spilt.

A bundle is one issue cycle. Every loop body counts once. No time of transfers or semaphores is in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schedc import cache
from schedc.backends.pallas.aot.bundles import Bundle, lines_of, read_bundles
from schedc.backends.pallas.aot.compile import compile_with_bundles
from schedc.backends.pallas.aot.process import Progress
from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.output import read_output_file
from schedc.errors import UserError
from schedc.inspect.numbered import Numbered
from schedc.inspect.subject import Subject
from schedc.inspect.units import OTHER, Units, units_table

KERNEL_FILE = "kernel.py"
OUTSIDE = "(outside)"
"""Where the kernel is entered and left, and the edges of loops over layers."""

_SPILT = re.compile(r"#allocation\d+_spill")


@dataclass(frozen=True)
class Hot:
    """A line of the kernel and its bundles."""

    line: int
    text: str
    bundles: int
    empty: int
    operations: Mapping[str, int]


@dataclass
class PhaseBundles:
    """Of one phase. `operations` by unit; `spill_loads` and `spill_stores` are of registers that had no room."""

    phase: str
    bundles: int = 0
    empty: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    spill_loads: int = 0
    spill_stores: int = 0
    hottest: list[Hot] = field(default_factory=list)
    listing: list[Bundle] = field(default_factory=list)

    def utilisation(self, units: Units, chip: str) -> dict[str, float | None]:
        """Of the slots of every unit the share that is used, None where their number is not known."""
        shares: dict[str, float | None] = {}
        for name in units.names:
            slots = units.slots(name, chip)
            shares[name] = self.operations[name] / (slots * self.bundles) if slots and self.bundles else None
        return shares

    def to_dict(self, units: Units, chip: str) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "bundles": self.bundles,
            "empty": self.empty,
            "operations": {name: self.operations[name] for name in (*units.names, OTHER)},
            "utilisation": {
                name: None if share is None else round(share, 4)
                for name, share in self.utilisation(units, chip).items()
            },
            "spill_loads": self.spill_loads,
            "spill_stores": self.spill_stores,
            "hottest": [
                {**vars(hot), "operations": {name: count for name, count in hot.operations.items() if count}}
                for hot in self.hottest
            ],
        }


@dataclass(frozen=True)
class Llo:
    phases: tuple[PhaseBundles, ...]
    units: Units
    chip: str
    versions: Mapping[str, str]

    def phase(self, name: str) -> PhaseBundles:
        """Raises UserError that names the phases."""
        found = next((phase for phase in self.phases if phase.phase == name), None)
        if found is None:
            raise UserError(f"there is no phase {name!r}; there are {', '.join(p.phase for p in self.phases)}")
        return found

    def whole(self) -> PhaseBundles:
        """All phases together."""
        total = PhaseBundles("all")
        for phase in self.phases:
            total.bundles += phase.bundles
            total.empty += phase.empty
            total.operations += phase.operations
            total.spill_loads += phase.spill_loads
            total.spill_stores += phase.spill_stores
        return total


def llo(subject: Subject, timeout: float = 600, progress: Progress | None = None, hottest: int = 8) -> Llo:
    """Compile the kernel of a folder, unless its bundles are kept from a check of it. Raises CompileFailed."""
    if subject.folder is None:
        raise UserError("bundles are of a kernel that was compiled; give a folder written by `schedc compile`")
    kernel = emit(subject.program)
    if read_output_file(subject.folder / KERNEL_FILE) != kernel.source:
        raise UserError(f"{subject.folder}: kernel.py is not the kernel of program.ir; compile again")
    made, text = compile_with_bundles(
        subject.folder / KERNEL_FILE,
        subject.target.topology_name,
        subject.target.devices_used,
        timeout=timeout,
        progress=progress,
        store=cache.active(),
    )
    versions = {"jax": made.versions.jax, "libtpu": made.versions.libtpu}
    found = by_phase(read_bundles(text), kernel, Numbered(subject.program), units_table(), hottest)
    return Llo(found, units_table(), subject.target.chip.name, versions)


def by_phase(
    bundles: tuple[Bundle, ...], kernel: Kernel, numbered: Numbered, units: Units, hottest: int
) -> tuple[PhaseBundles, ...]:
    """In program order; `hottest` lines of each."""
    first = [line for line, _ in kernel.operations]
    names = dict.fromkeys(placed.phase for placed in numbered.ops if placed.phase)
    phases = {name: PhaseBundles(name) for name in (*names, OUTSIDE)}
    by_line: dict[tuple[str, int], list[Bundle]] = defaultdict(list)
    for bundle, line in zip(bundles, lines_of(bundles, KERNEL_FILE), strict=True):
        at = bisect_right(first, line) - 1
        name = numbered.ops[at].phase if at >= 0 else OUTSIDE
        phase = phases[name or OUTSIDE]
        _count(phase, bundle, units)
        by_line[phase.phase, first[at] if at >= 0 else 0].append(bundle)
    source = kernel.source.splitlines()
    for name, phase in phases.items():
        lines = [(line, found) for (of, line), found in by_line.items() if of == name and line]
        lines.sort(key=lambda item: (-len(item[1]), item[0]))
        phase.hottest = [_hot(line, source[line - 1].strip(), found, units) for line, found in lines[:hottest]]
    return tuple(phase for phase in phases.values() if phase.bundles)


def _count(phase: PhaseBundles, bundle: Bundle, units: Units) -> None:
    phase.bundles += 1
    phase.empty += not bundle.operations
    phase.listing.append(bundle)
    for operation in bundle.operations:
        unit = units.of(operation)
        phase.operations[unit] += 1
        if _SPILT.search(operation):
            phase.spill_loads += unit == "VLOAD" or operation.partition(" = ")[2].startswith("sld")
            phase.spill_stores += unit == "VSTORE" or operation.partition(" = ")[2].startswith("sst")


def _hot(line: int, text: str, bundles: Sequence[Bundle], units: Units) -> Hot:
    operations = Counter(units.of(operation) for bundle in bundles for operation in bundle.operations)
    return Hot(line, text, len(bundles), sum(1 for bundle in bundles if not bundle.operations), operations)

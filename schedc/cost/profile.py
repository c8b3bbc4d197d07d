"""The TPU compiler's own cycles of every operation, as a simulation can be charged with.

A profile is made by `schedc profile` from the compiled kernel of one program: bundles of the final schedule, stalls
included, by the source line, and so the operation, that they come from. For a program with the same operations in the
same order it gives every operation its own cycles. For another order of the same operations, as a search tries them, it
gives those of the operation's signature (`signature.py`): the mean over the places where that stands. What a profile
has no signature of is priced by the table of operations, and it is said how much that is.

The last computation of a loop's body drains after it, in the loop's edge; the table counts the drain to the
computation. So an edge is taken from the profile only where that computation is too.

Several profiles may be one table of signatures (`merged`), which knows no program by its order. Shipped ones are in
`profiles/`, by model and chip.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from schedc.cost.executions import executions
from schedc.cost.operations import CycleTable
from schedc.cost.prices import Prices, notes_of, table_price
from schedc.cost.signature import EDGE, signatures
from schedc.errors import UserError
from schedc.ir.program import BLOCKS, Compute, Op, Program, walk
from schedc.spec.base import Part
from schedc.validation import validate
from schedc.yaml_text import format_yaml, parse_yaml

SHIPPED = Path(__file__).with_name("profiles")


class Spread(Part):
    """Cycles of a signature: the mean over its `places`, by how often a step executes each; the least and the most."""

    mean: float = Field(ge=0)
    least: float = Field(ge=0)
    most: float = Field(ge=0)
    places: int = Field(gt=0)


class ProfileFile(Part):
    """As it is on disk. `order` numbers `signatures` in the order of `walk`; `cycles` are those of each operation.

    `phases` are the cycles of a whole step, by phase.
    """

    name: str
    program_sha256: str | None = None
    chip: str
    versions: dict[str, str]
    phases: dict[str, int] = Field(default_factory=dict)
    signatures: dict[str, Spread]
    order: list[int] = Field(default_factory=list)
    cycles: list[float] = Field(default_factory=list)


@dataclass(frozen=True)
class Profile:
    """`order` and `cycles` are empty in a table of signatures of several programs."""

    name: str
    chip: str
    versions: Mapping[str, str]
    spreads: Mapping[str, Spread]
    order: tuple[str, ...] = ()
    cycles: tuple[float, ...] = ()
    program_sha256: str | None = None
    phases: Mapping[str, int] = field(default_factory=dict)
    """Cycles of a whole step, by phase."""
    _known: Mapping[str, float] = field(init=False, repr=False, compare=False)
    _edges: Mapping[str, float] = field(init=False, repr=False, compare=False)
    """Of a loop's edge by the kind of its last computation, where that computation alone is known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", {signature: spread.mean for signature, spread in self.spreads.items()})
        edges: dict[str, list[Spread]] = defaultdict(list)
        for signature, spread in self.spreads.items():
            if signature.startswith(EDGE):
                edges[_kind_of_edge(signature)].append(spread)
        object.__setattr__(self, "_edges", {kind: _mean(several) for kind, several in edges.items()})

    @property
    def source(self) -> str:
        """For a person."""
        return (
            "the compiler's cycles (" + ", ".join(f"{name} {self.versions[name]}" for name in ("jax", "libtpu")) + ")"
        )

    def priced(self, program: Program, table: CycleTable) -> Prices:
        """Raises UserError for a profile of another chip, or one that knows no computation of the program."""
        chip = table.target.chip.compiler_name
        if self.chip != chip:
            raise UserError(
                f"the profile of {self.name} is for {self.chip}, the program for {chip}; make one for it with "
                "`schedc profile`"
            )
        wanted = signatures(program)
        if self.cycles and wanted == self.order:
            return Prices(self.cycles, self.source)
        return self._by_signature(program, table, wanted)

    def _by_signature(self, program: Program, table: CycleTable, wanted: Sequence[str]) -> Prices:
        operations = list(walk(program.body))
        edges = _last_computations(operations)
        cycles, said, missing, computations = [], [], 0, 0
        for number, (op, signature) in enumerate(zip(operations, wanted, strict=True)):
            waits_for = edges.get(number, number)
            known = self._known.get(signature) if wanted[waits_for] in self._known else None
            if known is None and waits_for != number and wanted[waits_for] in self._known:
                known = self._edges.get(_kind_of_edge(signature))
            price, note = (known, None) if known is not None else table_price(op, table, program.devices)
            cycles.append(price)
            said.append(note)
            computations += isinstance(op, Compute)
            missing += isinstance(op, Compute) and known is None
        if computations and missing == computations:
            raise UserError(
                f"the profile of {self.name} knows none of the {computations} computations of {program.name}; make one "
                "of it with `schedc profile`"
            )
        found = f"by signature, {computations - missing} of {computations} computations; the rest by the table"
        note = f"{missing} of {computations} computations are not in the profile of {self.name}: priced by the table"
        whole = f"{self.source}, by signature"
        return Prices(
            tuple(cycles), f"{self.source}, {found}" if missing else whole, notes_of([note if missing else None, *said])
        )

    def to_file(self) -> dict[str, Any]:
        numbers = {signature: number for number, signature in enumerate(self.spreads)}
        data: dict[str, Any] = {"name": self.name, "chip": self.chip, "versions": dict(self.versions)}
        if self.program_sha256 is not None:
            data["program_sha256"] = self.program_sha256
        if self.phases:
            data["phases"] = dict(self.phases)
        data["signatures"] = {name: spread.model_dump() for name, spread in self.spreads.items()}
        if self.order:
            data["order"] = [numbers.get(signature, -1) for signature in self.order]
            data["cycles"] = list(self.cycles)
        return data

    def write(self, path: Path) -> None:
        """As JSON or, with such a suffix, YAML. Raises UserError if it cannot be written."""
        text = format_yaml(self.to_file()) if path.suffix == ".yaml" else json.dumps(self.to_file(), indent=1) + "\n"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def profile_of(
    program: Program,
    chip: str,
    versions: Mapping[str, str],
    cycles: Sequence[float],
    program_sha256: str,
    phases: Mapping[str, int] | None = None,
) -> Profile:
    """Of one program, from the cycles of an execution of each of its operations."""
    order = signatures(program)
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for signature, amount, times in zip(order, cycles, executions(program, copies=True), strict=True):
        if signature:
            found[signature].append((amount, max(1, times)))
    spreads = {signature: _spread(places) for signature, places in sorted(found.items())}
    return Profile(program.name, chip, versions, spreads, order, tuple(cycles), program_sha256, phases or {})


def _spread(places: Sequence[tuple[float, int]]) -> Spread:
    amounts = [amount for amount, _ in places]
    mean = sum(amount * times for amount, times in places) / sum(times for _, times in places)
    return Spread(mean=round(mean, 2), least=min(amounts), most=max(amounts), places=len(places))


def _mean(several: Sequence[Spread]) -> float:
    return round(sum(s.mean * s.places for s in several) / sum(s.places for s in several), 2)


def _kind_of_edge(signature: str) -> str:
    return signature.removeprefix(EDGE).split(" ")[0]


def merged(profiles: Sequence[Profile], name: str) -> Profile:
    """One table of the signatures of several profiles of one chip, made by the same compiler. Raises UserError."""
    kinds = {(profile.chip, *sorted(profile.versions.items())) for profile in profiles}
    if len(kinds) != 1:
        raise UserError(f"profiles of {len(kinds)} chips or compilers are no one table; make them with the same")
    found: dict[str, list[Spread]] = defaultdict(list)
    for profile in profiles:
        for signature, spread in profile.spreads.items():
            found[signature].append(spread)
    spreads = {
        signature: Spread(
            mean=_mean(several),
            least=min(s.least for s in several),
            most=max(s.most for s in several),
            places=sum(s.places for s in several),
        )
        for signature, several in sorted(found.items())
    }
    return Profile(name, profiles[0].chip, profiles[0].versions, spreads)


def read_profile(text: str) -> Profile:
    """A file, or the name of a shipped table. Raises UserError for what is none."""
    path = Path(text)
    if not path.is_file():
        path = SHIPPED / f"{text}.yaml"
        if not path.is_file():
            shipped = ", ".join(sorted(found.stem for found in SHIPPED.glob("*.yaml"))) or "none"
            raise UserError(f"{text}: is no file, and no table of cycles of that name is shipped ({shipped})")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, _changed: int) -> Profile:
    try:
        content = path.read_text(encoding="utf-8")
        data = parse_yaml(content) if path.suffix == ".yaml" else json.loads(content)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: is no profile: {error}") from None
    file, faults = validate(ProfileFile, data)
    if file is None:
        raise UserError("\n".join([f"{path}: is no profile:", *(f"  {fault}" for fault in faults)]))
    names = list(file.signatures)
    order = tuple("" if number < 0 else names[number] for number in file.order)
    if len(file.cycles) != len(order):
        raise UserError(f"{path}: has {len(order)} operations and cycles of {len(file.cycles)}")
    return Profile(file.name, file.chip, file.versions, file.signatures, order, tuple(file.cycles), file.program_sha256)


def _last_computations(operations: Sequence[Op]) -> dict[int, int]:
    """By the number of a block, that of the last computation in it, if it has one."""
    found: dict[int, int] = {}
    for number, op in enumerate(operations):
        if isinstance(op, BLOCKS):
            inside = range(number + op.size - 1, number, -1)
            last = next((inner for inner in inside if isinstance(operations[inner], Compute)), None)
            if last is not None:
                found[number] = last
    return found

"""What is compiled: the cases of cases.yaml, and the hash by which a row of the table knows its program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from schedc.compiler.pipeline import Request, build
from schedc.ir.program import Program
from schedc.ir.text_print import print_program
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import RowsAre, StepShape
from schedc.placement.rules import PlacementRules
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from schedc.yaml_text import parse_yaml

CASES = Path(__file__).parent / "cases.yaml"


@dataclass(frozen=True)
class Case:
    """One model at one step shape on `devices` of a target; `changes` are merged into its spec."""

    name: str
    spec: str
    target: str
    devices: int
    rows: int
    context: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    ci: bool = False
    """Compiled by every run of the tests."""
    placement: Mapping[str, Any] = field(default_factory=dict)
    """Rules that are not the defaults."""
    settings: Mapping[str, int | float] = field(default_factory=dict)
    """Of the policy."""
    rows_are: RowsAre = "sequences"

    @property
    def label(self) -> str:
        return f"{self.name}, {self.rows} x {self.context}"

    def request(self) -> Request:
        """What `schedc compile` is asked for."""
        spec = load_spec(self.spec).model_dump(mode="json")
        changed = ModelSpec.model_validate(_merged(spec, self.changes))
        target = parse_target(self.target, self.devices)
        talk = communication_for(changed.hidden, self.rows, target)
        rules = PlacementRules.model_validate(self.placement)
        sizes = self.rows, self.context
        shape = StepShape(*sizes, devices=self.devices, placement=rules, communication=talk, rows_are=self.rows_are)
        return Request(changed, target, shape, settings=dict(self.settings))


def load_cases(path: Path = CASES) -> list[Case]:
    """Every case, in the order of the file."""
    cases = parse_yaml(path.read_text(encoding="utf-8"))
    return [case for name, entry in cases.items() for case in _shapes(name, entry)]


def _shapes(name: str, entry: Mapping[str, Any]) -> Iterator[Case]:
    ci = entry.get("ci", False)
    for rows in entry["rows"]:
        for context in entry["contexts"]:
            changes = entry.get("with", {})
            sizes = entry["devices"], rows, context
            others = entry.get("placement", {}), entry.get("set", {}), entry.get("rows_are", "sequences")
            yield Case(name, entry["spec"], entry["target"], *sizes, changes, ci, *others)
            ci = False


def _merged(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return old | {key: _merged(old.get(key), value) for key, value in new.items()}


def hash_of(program: Program) -> str:
    """The first half of the sha256 of the program's text, with addresses."""
    return sha256(print_program(program).encode()).hexdigest()[:32]


def program_hash(case: Case) -> str:
    """Of the program that the case is now."""
    return hash_of(build(case.request())[1])

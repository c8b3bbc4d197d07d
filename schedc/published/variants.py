"""Variants of a published schedule: what is changed, step by step, each on top of those before it.

A variant is a list of edits of the schedule's data, so it is validated, made a program, proven and simulated as the
published schedule is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from schedc.errors import SpecError
from schedc.files import parsed, validated
from schedc.published.form import Names, PublishedSchedule
from schedc.spec.base import Part, Problem

_FOLDER = Path(__file__).with_name("variants")


class Edit(Part):
    """One of: `take` tensors out of all starts; `start` or `start_next` tensors, or `move` or `add` a step, in `part`,
    `before` or `after` a step of that name or else first; `drop` a step; `set` a key path `to` a value."""

    take: Names = ()
    start: Names = ()
    start_next: Names = ()
    move: str | None = None
    add: Mapping[str, Any] | None = None
    drop: str | None = None
    set: str | None = None
    to: Any = None
    part: str | None = None
    before: str | None = None
    after: str | None = None

    @property
    def what(self) -> list[str]:
        asked = {name: getattr(self, name) for name in ("take", "start", "start_next", "move", "add", "drop", "set")}
        return [name for name, value in asked.items() if value]

    def problems(self) -> Iterator[Problem]:
        if len(self.what) != 1:
            yield "", "an edit is one of take, start, start_next, move, add, drop, set"
        elif self.what[0] not in ("take", "set") and self.part is None:
            yield "part", f"is needed to {self.what[0]}"
        if self.before and self.after:
            yield "before", "is given, and after too"


class Variant(Part):
    """`kind`: what is another than published: the order of transfers and phases alone, or the exchanges too."""

    name: str
    kind: Literal["order", "collectives"]
    idea: str
    edits: Annotated[tuple[Edit, ...], Field(strict=False, min_length=1)]


class Variants(Part):
    """`vmem_mib` is the most that regions and boxes may take, if the published ones do not take more themselves."""

    of: str
    vmem_mib: float = Field(gt=0)
    vmem_source: str
    variants: Annotated[tuple[Variant, ...], Field(strict=False, min_length=1)]


def read_variants(name: str) -> Variants:
    """Those of the published schedule `name` that come with schedc; raises SpecError with every fault."""
    return parse_variants((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), f"variants of {name}")


def has_variants(name: str) -> bool:
    return (_FOLDER / f"{name}.yaml").is_file()


def parse_variants(text: str, source: str) -> Variants:
    return parsed(Variants, text, source)


def with_variant(data: Mapping[str, Any], variant: Variant) -> dict[str, Any]:
    """The data of a schedule with all edits of a variant. Raises SpecError for one that finds nothing to change."""
    changed = dict(data)
    for index, edit in enumerate(variant.edits):
        try:
            changed = edited(changed, edit)
        except LookupError as error:
            raise SpecError(f"variant {variant.name}", [f"edits[{index}]: {error.args[0]}"]) from None
    return changed


def schedule_of(data: Mapping[str, Any], source: str) -> PublishedSchedule:
    """Raises SpecError for what is no schedule any more."""
    return validated(PublishedSchedule, dict(data), source)


def edited(data: Mapping[str, Any], edit: Edit) -> dict[str, Any]:
    """The data of a schedule with one edit. Raises LookupError for what is not there."""
    changed = deepcopy(dict(data))
    _EDITS[edit.what[0]](changed, edit)
    return changed


def _take(data: dict[str, Any], edit: Edit) -> None:
    missing = set(edit.take)
    for steps in (data["before"], data["after"], *data["parts"].values()):
        for step in steps:
            if step["do"] in ("start", "start_next"):
                missing -= {*step["tensors"]}
                step["tensors"] = [name for name in step["tensors"] if name not in edit.take]
    if missing:
        raise LookupError(f"take: nothing starts {', '.join(sorted(missing))}")


def _start(data: dict[str, Any], edit: Edit) -> None:
    do = edit.what[0]
    _insert(data, edit, {"do": do, "tensors": list(getattr(edit, do))})


def _move(data: dict[str, Any], edit: Edit) -> None:
    steps = _steps(data, edit.part)
    step = steps.pop(_index(steps, edit.move, f"move in {edit.part}"))
    _insert(data, edit, step)


def _add(data: dict[str, Any], edit: Edit) -> None:
    _insert(data, edit, dict(edit.add or {}))


def _drop(data: dict[str, Any], edit: Edit) -> None:
    steps = _steps(data, edit.part)
    steps.pop(_index(steps, edit.drop, f"drop in {edit.part}"))


def _set(data: dict[str, Any], edit: Edit) -> None:
    """Of a path such as `tensors.kda_wide.tiles` or `parts.moe.shared.cycles`: steps go by their names."""
    *way, last = str(edit.set).split(".")
    at: Any = data
    for key in way:
        if isinstance(at, list):
            at = at[_index(at, key, f"set {edit.set}")]
        elif key in at:
            at = at[key]
        else:
            raise LookupError(f"set {edit.set}: there is no {key}")
    at[last] = edit.to


def _insert(data: dict[str, Any], edit: Edit, step: dict[str, Any]) -> None:
    steps = _steps(data, edit.part)
    if edit.before:
        steps.insert(_index(steps, edit.before, f"before in {edit.part}"), step)
    elif edit.after:
        steps.insert(_index(steps, edit.after, f"after in {edit.part}") + 1, step)
    else:
        steps.insert(0, step)


def _steps(data: dict[str, Any], part: str | None) -> list[dict[str, Any]]:
    if part in ("before", "after"):
        found: list[dict[str, Any]] = data[part]
        return found
    if part not in data["parts"]:
        raise LookupError(f"there is no part {part}")
    steps: list[dict[str, Any]] = data["parts"][part]
    return steps


def _index(steps: list[dict[str, Any]], name: str | None, where: str) -> int:
    for index, step in enumerate(steps):
        if step.get("name") == name:
            return index
    raise LookupError(f"{where}: there is no step {name}")


_EDITS: Mapping[str, Callable[[dict[str, Any], Edit], None]] = {
    "take": _take, "start": _start, "start_next": _start, "move": _move, "add": _add, "drop": _drop, "set": _set,
}  # fmt: skip

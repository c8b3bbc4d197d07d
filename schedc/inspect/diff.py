"""What differs between two programs, and what that changed: issue of transfers, rings, tiles, addresses, times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any

from schedc.cost.machine import Machine
from schedc.cost.report import CostReport, predict
from schedc.inspect.numbered import Numbered
from schedc.inspect.subject import ModelSubject, Subject
from schedc.ir.program import ROW_BYTES, Buffer, RemoteStart, Start
from schedc.ir.uses import transfer_name

_ORIGINS = ("sources", "derived_from", "notes")


@dataclass(frozen=True)
class Figure:
    """A number of both, with its unit."""

    name: str
    unit: str
    first: float
    second: float

    @property
    def change(self) -> float:
        return self.second - self.first


@dataclass(frozen=True)
class Moved:
    """A transfer that is issued at other places: phase → executions a step, of both."""

    transfer: str
    first: Mapping[str, int]
    second: Mapping[str, int]


@dataclass(frozen=True)
class Tiled:
    """Bytes of one execution of a transfer, where they differ; 0: there is no such transfer."""

    transfer: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@dataclass(frozen=True)
class BufferChange:
    """None: there is no such buffer."""

    buffer: str
    first: tuple[int, int, int | None] | None
    """(rows, slots, address)"""
    second: tuple[int, int, int | None] | None

    @property
    def only_address(self) -> bool:
        return self.first is not None and self.second is not None and self.first[:2] == self.second[:2]


@dataclass(frozen=True)
class PhaseChange:
    """µs over the whole step; None: there is no such phase."""

    phase: str
    first_us: float | None
    second_us: float | None
    first_stall_us: float
    second_stall_us: float

    @property
    def change_us(self) -> float:
        return (self.second_us or 0.0) - (self.first_us or 0.0)


@dataclass(frozen=True)
class Diff:
    """`settings` are (name, of the first, of the second); everything that is the same is left out."""

    settings: tuple[tuple[str, str, str], ...]
    figures: tuple[Figure, ...]
    moved: tuple[Moved, ...]
    tiled: tuple[Tiled, ...]
    buffers: tuple[BufferChange, ...]
    phases: tuple[PhaseChange, ...]
    reordered: tuple[str, ...]
    """Phases that stand elsewhere in the order of those that both have."""
    same_program: bool

    @property
    def is_empty(self) -> bool:
        """Nothing that is looked at differs."""
        return not any((self.settings, self.figures, self.moved, self.tiled, self.buffers, self.phases, self.reordered))

    def to_dict(self) -> dict[str, Any]:
        figures = [{**asdict(figure), "change": round(figure.change, 3)} for figure in self.figures]
        return {**asdict(self), "figures": figures}


def priced_alike(first: Subject, second: Subject) -> list[Machine]:
    """With the compiler's cycles if it has checked both, else by the table of operations."""
    profiled = first.profile is not None and second.profile is not None
    return [subject.priced if profiled else subject.machine for subject in (first, second)]


def diff(first: Subject, second: Subject) -> Diff:
    machines = priced_alike(first, second)
    costs = [predict(s.program, s.target, machine=m) for s, m in zip((first, second), machines, strict=True)]
    before, after = Numbered(first.program), Numbered(second.program)
    return Diff(
        settings=_settings(first, second),
        figures=tuple(figure for figure in _figures(first, second, *costs) if figure.change),
        moved=_moved(first, second),
        tiled=_tiled(before, after),
        buffers=_buffers(first, second),
        phases=_phases(*costs),
        reordered=_reordered(before, after),
        same_program=first.program == second.program,
    )


def _settings(first: Subject, second: Subject) -> tuple[tuple[str, str, str], ...]:
    """Of chips of one name, such as two states of a file of the user's own, the figures too."""
    alike = first.target.chip.name == second.target.chip.name

    def facts(subject: Subject) -> dict[str, str]:
        named: dict[str, Any] = dict(subject.program.attributes) | {"devices": subject.program.devices}
        if alike:
            named |= _leaves(subject.target.chip.model_dump(mode="json"), "chip")
        if not isinstance(subject, ModelSubject):
            return {name: str(value) for name, value in named.items()}
        shape = subject.shape
        talk = shape.communication
        named |= {
            "collective": talk.all_reduce if shape.devices > 1 else "",
            "wire": talk.wire if shape.devices > 1 else "",
            "forms": ", ".join(f"{stored}={form}" for stored, form in shape.forms),
            "taps": ", ".join(map(str, shape.taps)),
            "placement": ", ".join(f"{k}={v}" for k, v in shape.placement.model_dump(mode="json").items()),
        }
        return {name: str(value) for name, value in named.items()} | {
            f"setting {name}": f"{value:g}" for name, value in subject.settings.items()
        }

    one, other = facts(first), facts(second)
    names = dict.fromkeys((*one, *other))
    changed = ((name, one.get(name, ""), other.get(name, "")) for name in names)
    return tuple(change for change in changed if change[1] != change[2])


def _leaves(tree: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """(`path` and the keys down to it, value) of all that is no mapping; not where the figures are from."""
    for key, value in tree.items():
        if key in _ORIGINS:
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}.{key}")
        else:
            yield f"{path}.{key}", value


def _figures(first: Subject, second: Subject, one: CostReport, other: CostReport) -> list[Figure]:
    def vmem(subject: Subject) -> int:
        return sum(pool.rows for pool in subject.program.pools) * ROW_BYTES

    def semaphores(subject: Subject) -> int:
        return sum(semaphore.count for semaphore in subject.program.semaphores)

    figures = [
        Figure("step", "µs", one.step_us, other.step_us),
        Figure("core waits", "µs", one.stall_us, other.stall_us),
        Figure("HBM idle", "µs", one.hbm_idle_us, other.hbm_idle_us),
        *(
            Figure(f"HBM idle: {cause}", "µs", one.idle_causes.get(cause, 0.0), other.idle_causes.get(cause, 0.0))
            for cause in dict.fromkeys((*one.idle_causes, *other.idle_causes))
        ),
        Figure("HBM read", "bytes", one.hbm_bytes_read, other.hbm_bytes_read),
        Figure("HBM written", "bytes", one.hbm_bytes_written, other.hbm_bytes_written),
        Figure("sent to devices", "bytes", one.bytes_sent, other.bytes_sent),
        Figure("transfers", "", one.transfers, other.transfers),
        Figure("VMEM peak", "bytes", vmem(first), vmem(second)),
        Figure("semaphores", "", semaphores(first), semaphores(second)),
    ]
    for name in dict.fromkeys((*one.bounds, *other.bounds)):
        times = (report.bounds[name].time_us if name in report.bounds else 0.0 for report in (one, other))
        figures.append(Figure(f"bound: {name}", "µs", *times))
    return figures


def _moved(first: Subject, second: Subject) -> tuple[Moved, ...]:
    one, other = _issued(first), _issued(second)
    names = dict.fromkeys((*one, *other))
    return tuple(
        Moved(name, one.get(name, {}), other.get(name, {}))
        for name in names
        if one.get(name, {}) != other.get(name, {})
    )


def _issued(subject: Subject) -> dict[str, dict[str, int]]:
    """By transfer, in which phases it is issued, how often a step."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    flow = subject.flow
    for moved in flow.moved:
        done = flow.executed[moved.at]
        op = flow.numbered.ops[done.op].op
        assert isinstance(op, (Start, RemoteStart))
        phases = found[transfer_name(op)]
        phases[done.phase] = phases.get(done.phase, 0) + 1
    return found


def _tiled(before: Numbered, after: Numbered) -> tuple[Tiled, ...]:
    def sizes(numbered: Numbered) -> dict[str, tuple[int, ...]]:
        found: dict[str, set[int]] = defaultdict(set)
        for placed in numbered.ops:
            if isinstance(placed.op, (Start, RemoteStart)):
                found[transfer_name(placed.op)].add(placed.op.source.rows * ROW_BYTES)
        return {name: tuple(sorted(of_name)) for name, of_name in found.items()}

    one, other = sizes(before), sizes(after)
    names = dict.fromkeys((*one, *other))
    return tuple(
        Tiled(name, one.get(name, ()), other.get(name, ())) for name in names if one.get(name) != other.get(name)
    )


def _buffers(first: Subject, second: Subject) -> tuple[BufferChange, ...]:
    def placed(buffer: Buffer | None) -> tuple[int, int, int | None] | None:
        return None if buffer is None else (buffer.rows, buffer.slots, buffer.address)

    one, other = ({buffer.name: buffer for buffer in s.program.buffers} for s in (first, second))
    names = dict.fromkeys((*one, *other))
    changes = (BufferChange(name, placed(one.get(name)), placed(other.get(name))) for name in names)
    return tuple(change for change in changes if change.first != change.second)


def _phases(one: CostReport, other: CostReport) -> tuple[PhaseChange, ...]:
    """Those whose time differs, in the order of the first."""
    before, after = ({phase.name: phase for phase in report.phases} for report in (one, other))
    changes = []
    for name in dict.fromkeys((*before, *after)):
        a, b = before.get(name), after.get(name)
        if a is None or b is None or (a.time_us, a.stall_us) != (b.time_us, b.stall_us):
            changes.append(
                PhaseChange(
                    name,
                    a.time_us if a else None,
                    b.time_us if b else None,
                    a.stall_us if a else 0.0,
                    b.stall_us if b else 0.0,
                )
            )
    return tuple(changes)


def _reordered(before: Numbered, after: Numbered) -> tuple[str, ...]:
    """The fewest phases that have to be moved."""
    one, other = (list(dict.fromkeys(placed.phase for placed in n.ops if placed.phase)) for n in (before, after))
    both = set(one) & set(other)
    one, other = ([name for name in names if name in both] for names in (one, other))
    kept: set[str] = set()
    for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        kept |= set(one[block.a : block.a + block.size])
    return tuple(name for name in one if name not in kept)

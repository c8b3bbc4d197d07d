"""A simulated step as what every trace viewer knows: tracks of nested slices, flows between slices, counters."""

from __future__ import annotations

from dataclasses import dataclass, field

from schedc.inspect.counters import Counter, counters_of
from schedc.inspect.history import History, Transfer
from schedc.inspect.path import CAUSES, idle_times, path_of
from schedc.inspect.runs import runs_of
from schedc.inspect.sources import Sources
from schedc.inspect.vmem_map import VmemMap
from schedc.ir.program import Compute, Op, RemoteStart, SetScalar, Start, Wait
from schedc.ir.uses import transfer_name

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Slice:
    """On track `track`, from `began` to `ended` in whole ns."""

    track: int
    name: str
    kind: str
    began: int
    ended: int
    facts: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Tracks:
    """Slices of one track are nested or apart, never overlapping otherwise: viewers do not draw those."""

    title: str
    names: tuple[tuple[str, str], ...]
    """(group, name) of every track"""
    slices: tuple[Slice, ...]
    flows: tuple[tuple[int, ...], ...]
    """Of a transfer, the slices of its start, itself, its wait and its first use, as far as there are."""
    counters: tuple[Counter, ...]


def tracks_of(history: History, sources: Sources, vmem: VmemMap) -> Tracks:
    maker = _Maker(history, sources)
    maker.core()
    maker.mxu()
    maker.transfers()
    maker.semaphores()
    maker.idle()
    maker.critical()
    return Tracks(
        history.title, tuple(maker.tracks), tuple(maker.slices), tuple(maker.flows), counters_of(history, vmem)
    )


@dataclass
class _Maker:
    history: History
    sources: Sources
    tracks: dict[tuple[str, str], int] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    flows: list[tuple[int, ...]] = field(default_factory=list)
    of_step: dict[int, int] = field(default_factory=dict)
    """The slice on the core of every step."""

    def _add(
        self, track: tuple[str, str], name: str, kind: str, began: float, ended: float, **facts: Value | None
    ) -> int:
        number = self.tracks.setdefault(track, len(self.tracks))
        given = tuple((name, value) for name, value in facts.items() if value is not None)
        self.slices.append(Slice(number, name, kind, round(began), round(ended), given))
        return len(self.slices) - 1

    def _op(self, number: int) -> dict[str, Value | None]:
        return {
            "op": number,
            "ir_line": self.sources.ir_lines[number],
            "kernel_line": self.sources.kernel_lines[number],
            "phase": self.history.phase_of[number] or None,
        }

    def core(self) -> None:
        track = ("core", "core")
        for layer in self.history.layers:
            self._add(track, layer.name, "layer", layer.began, layer.ended)
        for phase in self.history.phases:
            self._add(track, phase.name, "phase", phase.began, phase.ended, ir_line=self.sources.ir_lines[phase.op])
        for run in runs_of(self.history):
            op = self.history.ops[run.op]
            several = f" × {run.count}" if run.count > 1 else ""
            at = self._add(track, name_of(op) + several, kind_of(op), run.began, run.ended, **self._op(run.op))
            self.of_step |= dict.fromkeys(range(run.first, run.last + 1), at)

    def mxu(self) -> None:
        for step in self.history.steps:
            op = self.history.ops[step.op]
            if step.op in self.history.on_mxu and isinstance(op, Compute):
                self._add(("core", "MXU"), op.kind, "mxu", step.began, step.ended, **self._op(step.op))

    def transfers(self) -> None:
        rows = {buffer.name: buffer for buffer in self.history.program.buffers}
        ends: dict[tuple[str, str], list[float]] = {}
        for t in self.history.transfers:
            facts = self._op(t.op) | {"bytes": t.bytes, "semaphore": t.semaphore}
            if t.lane == "link":
                track = ("links", "same chip" if t.route == 0 else f"to chip {t.route}")
                here = self._add(track, t.name, "message", t.began, t.left, arrives_ns=round(t.ended), **facts)
            else:
                place = rows.get(t.target.storage)
                slot = f"{place.name}<{t.target.row // place.rows}>" if place is not None else "to HBM"
                began = round(t.began) - round(t.issued)
                lane = _free(ends.setdefault(("DMA", slot), []), t)
                track = ("DMA", slot if lane == 0 else f"{slot} ·{lane + 1}")
                here = self._add(track, t.name, "transfer", t.issued, t.ended, began_after_ns=began, **facts)
            ways = [self.of_step[t.step], here]
            ways += [self.of_step[step] for step in (t.wait, t.first_use) if step is not None]
            self.flows.append(tuple(ways))

    def semaphores(self) -> None:
        for wait in self.history.waits:
            if wait.semaphore:
                blocked = round(wait.ended) - round(wait.reached)
                facts = self._op(self.history.steps[wait.step].op) | {
                    "transfers": len(wait.took),
                    "blocked_ns": blocked,
                }
                name = "blocked" if wait.blocked else "ready"
                self._add(("semaphores", wait.semaphore), name, "semaphore", wait.reached, wait.ended, **facts)

    def idle(self) -> None:
        for idle in idle_times(self.history):
            self._add(("HBM", "idle"), CAUSES[idle.cause], "idle", idle.began, idle.ended)

    def critical(self) -> None:
        for part in path_of(self.history):
            name = part.what if part.kind == "core" else f"{part.what} ({part.cause})"
            self._add(("core", "critical path"), name, "critical", part.began, part.ended)


def _free(ends: list[float], transfer: Transfer) -> int:
    """The first of the lanes that is free when the transfer is issued; `ends` is kept up to date."""
    lane = next((n for n, end in enumerate(ends) if end <= transfer.issued), len(ends))
    ends[lane : lane + 1] = [transfer.ended]
    return lane


def name_of(op: Op) -> str:
    match op:
        case Compute(kind):
            return kind
        case Start() | RemoteStart():
            verb = "start" if isinstance(op, Start) else "send"
            return f"{verb} {transfer_name(op)}"
        case Wait(semaphore, _):
            return f"wait {semaphore.name}"
        case SetScalar(array):
            return f"set {array}"
        case _:
            return type(op).__name__.lower()


def kind_of(op: Op) -> str:
    return type(op).__name__.lower()

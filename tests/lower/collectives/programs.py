"""Small programs that a collective is tried in: layers in a loop with two occurrences each, and what they compute.

Every device has a state of its own; an occurrence sends it and adds a part of what comes back. Other work stands
between the parts of the collective, and two runs of layers follow each other, with other parities than the loops alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schedc.ir.allocate import allocate
from schedc.ir.expr import Const, Counter, Expr, add, mod, mul
from schedc.ir.program import (
    Array,
    Barrier,
    Buffer,
    Loop,
    Op,
    Phase,
    Pool,
    Program,
    Region,
    Semaphore,
    SemaphoreRef,
    Start,
    Wait,
)
from schedc.lower.collectives.group import Group, Topology
from schedc.lower.collectives.protocol import Collective, Exchanged, Kind, occurrence_parity
from schedc.lower.collectives.registry import ALGORITHMS, make_collective
from schedc.lower.graph import PER_WORD
from schedc.lower.parts import WORK, compute

TOPOLOGY = Topology(devices_per_chip=2, devices_per_host=8)
SHARE = 0.25
RUNS = (3, 2)
"""Layers of each run; the second has one occurrence a layer."""
DONE = "done"


@dataclass(frozen=True)
class Case:
    algorithm: str
    kind: Kind
    devices: int
    wire: str = "f32"
    rows: int = 0
    """Of the state; 0: as few as there can be."""
    size: int = 0
    """Of the groups; 0: all devices."""
    stride: int = 1
    pieces: int = 1
    """That an all-reduce is cut into."""
    used: int = 0
    """Of 8 rows of a panel; 0: all."""

    @property
    def group(self) -> Group:
        return Group(self.devices, self.size or (2 if self.kind == "exchange" else self.devices), self.stride)

    @property
    def exchanged(self) -> Exchanged:
        rows = self.rows or (8 * self.group.size if self.kind == "reduce_scatter" else 24)
        return Exchanged(
            "sums",
            self.kind,
            self.group,
            TOPOLOGY,
            rows,
            self.wire,
            pieces=self.pieces,  # type: ignore[arg-type]
            height=8 if self.used else 0,
            used=self.used,
        )

    @property
    def collective(self) -> Collective:
        return make_collective(self.algorithm, self.exchanged)


def cases(devices: int) -> Iterator[Case]:
    """Every algorithm, kind and wire."""
    for algorithm in ALGORITHMS.values():
        for kind in algorithm.kinds:
            for wire in PER_WORD:
                yield Case(algorithm.name, kind, devices, wire)


def program(case: Case, parities: tuple[int, int] = (0, 1), capacity: int = 1 << 17) -> Program:
    """`parities`: those of the first run's two occurrences, which are right as 0, 1."""
    exchanged, collective = case.exchanged, case.collective
    pieces = range(case.pieces)
    rows, back = exchanged.rows * case.pieces, exchanged.target_rows * case.pieces
    state, other, total = Region("state", rows), Region("other", rows), Region("back", back)

    def piece(whole: Region, number: int) -> Region:
        return Region(whole.storage, whole.rows // case.pieces, Const(number * whole.rows // case.pieces))

    def occurrence(parity: Expr) -> tuple[Op, ...]:
        work = compute("move", {"x": state}, {"out": other})
        slots = [add(mul(parity, case.pieces), number) for number in pieces]
        starts = [op for p in pieces for op in (*collective.start(piece(state, p), slots[p]), work)]
        rounds = zip(*(collective.steps(slot) for slot in slots), strict=True)
        steps = [op for steps_of in rounds for step in steps_of for op in (*step, work)]
        return (
            Phase("start", tuple(starts)),
            *steps,
            *(op for p in pieces for op in (*collective.finish(piece(total, p), slots[p]), work)),
            *(op for slot in slots for op in collective.settle(slot)),
            use(case, total),
        )

    first = (*occurrence(Const(parities[0])), *occurrence(Const(parities[1])))
    second = occurrence(occurrence_parity(2 * RUNS[0], 1, 0, Counter("n")))
    declared = collective.declarations()
    buffers = (
        *(Buffer(name, WORK, size) for name, size in (("state", rows), ("other", rows), ("back", back))),
        *declared.buffers,
    )
    made = Program(
        "collective",
        tuple(Pool(name) for name in dict.fromkeys(buffer.pool for buffer in buffers)),
        buffers,
        (Array("given", rows, "input"), Array("left", rows, "output"), Array("last", back, "output")),
        (),
        (*declared.semaphores, Semaphore(DONE)),
        (
            *(compute("zero", writes={"out": region}) for region in declared.cleared),
            Barrier(),
            *copied(Region("given", rows), state),
            Loop("l", Const(RUNS[0]), first),
            Loop("n", Const(RUNS[1]), second),
            *copied(state, Region("left", rows)),
            *copied(total, Region("last", back)),
        ),
        case.devices,
    )
    return allocate(made, capacity)


def copied(source: Region, target: Region) -> tuple[Op, ...]:
    return Start(source, target, SemaphoreRef(DONE)), Wait(SemaphoreRef(DONE), source.rows)


def use(case: Case, total: Region) -> Op:
    """state += SHARE · what came back: all of it, the part of the next member, or to this member's part."""
    rows, group = case.exchanged.rows * case.pieces, case.group
    state, came = Region("state", rows), total
    if case.kind == "all_gather":
        came = Region("back", rows, mul(mod(add(group.index(), 1), group.size), rows))
    if case.kind == "reduce_scatter":
        state = Region("state", total.rows, mul(group.index(), total.rows))
    size = {"rows": came.rows, "columns": 128, "multiplier": SHARE}
    return compute("residual_add", {"y": came}, updates={"x": state}, attributes=size)


def means(case: Case, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `left` and `last` should hold, of f32[devices, rows, 128] given; the wire is taken to be exact."""
    group, state = case.group, given.astype(np.float64)
    members = [[r for r in range(case.devices) if (r // (group.size * group.stride), r % group.stride) == key]
               for key in dict.fromkeys((r // (group.size * group.stride), r % group.stride)
                                        for r in range(case.devices))]  # fmt: skip
    last = np.zeros((case.devices, case.exchanged.target_rows * case.pieces, 128))
    for _ in range(2 * RUNS[0] + RUNS[1]):
        state = state.copy()
        for row in members:
            sent = state[row].copy()
            part = case.exchanged.target_rows
            for index, rank in enumerate(row):
                match case.kind:
                    case "all_reduce":
                        last[rank] = sent.sum(axis=0)
                    case "all_gather":
                        last[rank] = sent.reshape(-1, 128)
                    case "reduce_scatter":
                        last[rank] = sent.sum(axis=0)[index * part : (index + 1) * part]
                    case "exchange":
                        last[rank] = sent[1 - index]
                if case.kind == "all_gather":
                    state[rank] += SHARE * sent[(index + 1) % len(row)]
                elif case.kind == "reduce_scatter":
                    state[rank][index * part : (index + 1) * part] += SHARE * last[rank]
                else:
                    state[rank] += SHARE * last[rank]
    return state, last

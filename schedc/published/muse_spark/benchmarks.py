"""Their micro-benchmarks as programs: collectives, copies between two devices, streams of weights."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Const, Counter, Rank, mod, xor
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
    RemoteStart,
    Semaphore,
    SemaphoreRef,
    Wait,
)
from schedc.lower.collectives.protocol import complete
from schedc.lower.collectives.stages import Staged
from schedc.lower.graph import Declarations
from schedc.lower.parts import WORK, compute
from schedc.published.muse_spark.exchanges import DEVICES
from schedc.published.muse_spark.experts import CHOSEN, Experts
from schedc.published.muse_spark.layer import NORMED, X, product
from schedc.published.muse_spark.prices import Prices
from schedc.published.muse_spark.step import head, ring_of
from schedc.published.muse_spark.tiles import LAYER, TileRing
from schedc.published.muse_spark.variant import Variant

TIMES = 8
"""Repetitions of a collective; a benchmark's time is that of one."""


def program(name: str, declared: Declarations, body: tuple[Op, ...], devices: int) -> Program:
    pools = tuple(Pool(pool) for pool in dict.fromkeys(buffer.pool for buffer in declared.buffers))
    return Program(name, pools, declared.buffers, declared.arrays, declared.scalars, declared.semaphores, body, devices)


def collective(staged: Staged) -> Program:
    """`TIMES` one after the other, each entered through a barrier."""
    what = staged.exchanged
    own = Declarations((Buffer("part", WORK, what.rows), Buffer("whole", WORK, what.target_rows)))
    source, target = Region("part", what.rows), Region("whole", what.target_rows)
    slot = mod(Counter("time"), 2)
    once = (Barrier(), *staged.start(source, slot), *complete(staged, target, slot))
    begin = compute("zero", writes={"out": source})
    body = (Phase("begin", (begin,)), Phase("collective", (Loop("time", Const(TIMES), once),)))
    return program(what.name, own + staged.declarations(), body, DEVICES)


def copies(rows: int, peers: tuple[int, ...], devices: int = DEVICES) -> Program:
    """`rows` of 512 bytes to each of the peers `rank ^ peer`, awaited."""
    inbox = rows * len(peers)
    declared = Declarations(
        (Buffer("mine", WORK, rows), Buffer("theirs", WORK, inbox)),
        semaphores=(Semaphore("sent"), Semaphore("arrived")),
    )
    sends = tuple(
        RemoteStart(
            Region("mine", rows),
            Region("theirs", rows, Const(place * rows)),
            xor(Rank(), Const(peer)),
            SemaphoreRef("sent"),
            SemaphoreRef("arrived"),
        )
        for place, peer in enumerate(peers)
    )
    waits = (Wait(SemaphoreRef("arrived"), inbox), Wait(SemaphoreRef("sent"), inbox))
    return program("copies", declared, (Phase("copies", (*sends, *waits)),), devices)


def dense_layer(variant: Variant, computes: bool = True) -> Program:
    """The dense weights of one layer through the ring, each tile multiplied, or only moved."""
    whole = ring_of(variant)
    ring = replace(whole, layers=1, head_tiles=0)
    out = Region("out", 64)
    ops: list[Op] = []
    for number in range(len(ring.tiles)):
        dot = (product(ring, variant, number, NORMED, out),) if computes else ()
        ops += [ring.arrive(number), *dot, *ring.refill(number)]
    body = Loop(LAYER, Const(1), tuple(ops))
    declared = Declarations((Buffer("normed", WORK, 512), Buffer("out", WORK, 64))) + ring.declarations()
    return program("dense", declared, (_begin(ring, NORMED), Phase("dense", (body,))), 1)


def dense_and_experts(variant: Variant) -> Program:
    """All weights of the layers moved, and nothing else done: the dense tiles and, beside them, the experts' slices."""
    ring, experts = ring_of(variant), Experts(variant, Prices(()))
    waits: list[Op] = []
    for expert in range(CHOSEN):
        slot = Const(expert % variant.expert_slots)
        up, scales, down, down_scales = experts.rows
        waits += [
            Wait(SemaphoreRef("gate_up", slot), up + scales),
            Wait(SemaphoreRef("down", slot), down + down_scales),
        ]
        if expert + variant.expert_slots < CHOSEN:
            waits += experts.start(Const(expert + variant.expert_slots))
    dense = tuple(op for number in range(len(ring.tiles)) for op in (ring.arrive(number), *ring.refill(number)))
    body = Loop(LAYER, Const(variant.layers), (*experts.first(), *dense, *waits))
    tail = ring.head_loop(lambda weights, tile: ())
    declared = ring.declarations() + experts.declarations()
    return program("moved", declared, (Phase("prime", ring.prime()), Phase("stream", (body,)), Phase("head", tail)), 1)


def lm_head(variant: Variant) -> Program:
    """The head alone: the ring's first tiles are its own."""
    ring = replace(ring_of(variant), layers=0)
    declared = Declarations(
        (Buffer("x", WORK, 512), Buffer("normed", WORK, 512), Buffer("best", WORK, 16)),
        (Array("best_out", 16, "output"),),
        semaphores=(Semaphore("best"),),
    )
    return program("head", declared + ring.declarations(), (_begin(ring, X), *head(variant, ring)), 1)


def _begin(ring: TileRing, operand: Region) -> Phase:
    """The first tiles, and something to multiply them with."""
    return Phase("begin", (*ring.prime(), compute("zero", writes={"out": operand})))

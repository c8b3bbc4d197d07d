"""Single faults put into a generated program, each of a kind that a schedule can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from schedc.ir.expr import add, mod
from schedc.ir.program import Compute, Loop, Op, Phase, Program, Start, Wait, When

Rewrite = Callable[[Op], Op | None]


def rewritten(program: Program, phase: str, rewrite: Rewrite) -> Program:
    """The program with every operation of one phase replaced by `rewrite(op)`, None to leave it out."""

    def ops_of(ops: tuple[Op, ...], inside: bool) -> tuple[Op, ...]:
        kept = []
        for op in ops:
            here = inside or (isinstance(op, Phase) and op.name == phase)
            if isinstance(op, Loop | When | Phase):
                kept.append(replace(op, body=ops_of(op.body, here)))
            elif (new := rewrite(op) if here else op) is not None:
                kept.append(new)
        return tuple(kept)

    changed = replace(program, body=ops_of(program.body, False))
    assert changed != program, f"the fault is not in phase {phase}"
    return changed


def without_weight_wait(program: Program) -> Program:
    """The projection reads its tile whether it has arrived or not."""
    return rewritten(program, "up", lambda op: None if isinstance(op, Wait) else op)


def without_cache_wait(program: Program) -> Program:
    """Older tokens are attended to before they are there."""

    def drop(op: Op) -> Op | None:
        return None if isinstance(op, Wait) and op.semaphore.name.startswith("kv_old") else op

    return rewritten(program, "attend", drop)


def with_next_slot(program: Program) -> Program:
    """The projection reads the slot after the one that its tile is in."""

    def shift(op: Op) -> Op:
        if not isinstance(op, Compute):
            return op
        slots = program.buffer("weights_slot").slots
        operands = [
            replace(o, region=replace(o.region, slot=mod(add(o.region.slot, 1), slots)))
            if o.region.storage == "weights_slot"
            else o
            for o in op.operands
        ]
        return replace(op, operands=tuple(operands))

    return rewritten(program, "up", shift)


def with_early_refill(program: Program) -> Program:
    """A slot is refilled before the tile in it has been used."""

    def reorder(ops: tuple[Op, ...], inside: bool) -> tuple[Op, ...]:
        found = []
        for op in ops:
            here = inside or (isinstance(op, Phase) and op.name == "up")
            found.append(replace(op, body=reorder(op.body, here)) if isinstance(op, Loop | When | Phase) else op)
        if inside and any(isinstance(op, Compute) for op in found):
            found.sort(key=lambda op: isinstance(op, Compute))
        return tuple(found)

    changed = replace(program, body=reorder(program.body, False))
    assert changed != program
    return changed


def without_prefetch(program: Program) -> Program:
    """The first tiles of the step are never started: the wait for them never ends."""
    return rewritten(program, "prologue", lambda op: None if isinstance(op, Start) else op)


FAULTS = {
    fault.__name__: fault for fault in (without_weight_wait, without_cache_wait, with_next_slot, with_early_refill)
}

"""What an operation is by, wherever it stands: the key under which a profile's cycles serve another program.

Two operations of one signature compile to the same code but for addresses, so another order of the same operations
costs the same but for what neighbours overlap. In a signature are the kind, all attributes, and of every operand its
name, its access and its rows; of a start the direction; of a loop's edge the computation before it, whose results it
waits for; of a barrier the devices; of what is unrolled how many copies stand side by side, since they overlap.

    matmul depth=7168 dtype=bf16 panels=2 rows=8 (w:read:28672 x:read:56 y:write:16)
"""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.expr import Const
from schedc.ir.program import BLOCKS, Barrier, Compute, Loop, Op, Phase, Program, Signal, Start, When, walk
from schedc.ir.uses import mnemonic


def signatures(program: Program) -> tuple[str, ...]:
    """Of every operation of `walk(program.body)`; empty for a phase, which is no instruction."""
    arrays = {array.name for array in program.arrays}
    return tuple(_signatures(program.body, arrays, program.devices, ""))


def _signatures(ops: tuple[Op, ...], arrays: set[str], devices: int, copies: str) -> Iterator[str]:
    for op in ops:
        own = _signature(op, arrays, devices)
        yield own and own + copies
        if isinstance(op, Loop) and op.unroll and isinstance(op.trips, Const):
            yield from _signatures(op.body, arrays, devices, f" unrolled={op.trips.value}")
        elif isinstance(op, BLOCKS):
            yield from _signatures(op.body, arrays, devices, "" if isinstance(op, Loop) else copies)


def _signature(op: Op, arrays: set[str], devices: int) -> str:
    match op:
        case Compute():
            return compute_signature(op)
        case Start(source, target):
            return f"start {_space(source.storage, arrays)} -> {_space(target.storage, arrays)}"
        case Signal() if op.peer is not None:
            return "signal_peer"
        case Barrier():
            return f"barrier devices={devices}"
        case When(conditions):
            return f"when conditions={len(conditions)}"
        case Loop(_, _, body, unroll):
            last = last_computation(body)
            return "unrolled" if unroll else EDGE + ("none" if last is None else compute_signature(last))
        case Phase():
            return ""
        case _:
            return mnemonic(op)


EDGE = "loop ending in "
"""How the signature of a loop's edge begins; that of its last computation follows."""


def compute_signature(op: Compute) -> str:
    facts = "".join(f" {name}={value}" for name, value in sorted(op.attributes))
    operands = " ".join(f"{o.name}:{o.access}:{o.region.rows}" for o in sorted(op.operands, key=lambda o: o.name))
    return f"{op.kind}{facts} ({operands})"


def _space(storage: str, arrays: set[str]) -> str:
    return "hbm" if storage in arrays else "vmem"


def last_computation(body: tuple[Op, ...]) -> Compute | None:
    """What a body computes last, whose results its edge waits for."""
    return next((op for op in reversed(list(walk(body))) if isinstance(op, Compute)), None)

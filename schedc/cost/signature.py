"""What an operation is by, wherever it stands: the key under which a profile's cycles serve another program.

Two operations of one signature compile to the same code but for addresses, so another order of the same operations
costs the same but for what neighbours overlap. In a signature are the kind, all attributes, and of every operand its
name, its access and its rows; of a start the direction; of a loop's edge the computation before it, whose results it
waits for; of a barrier the devices.

    matmul depth=7168 dtype=bf16 panels=2 rows=8 (w:read:28672 x:read:56 y:write:16)
"""

from __future__ import annotations

from schedc.ir.program import (
    BLOCKS,
    Await,
    Barrier,
    Case,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    RemoteStart,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    walk,
)


def signatures(program: Program) -> tuple[str, ...]:
    """Of every operation of `walk(program.body)`; empty for a phase, which is no instruction."""
    arrays = {array.name for array in program.arrays}
    return tuple(_signature(op, arrays, program.devices) for op in walk(program.body))


def _signature(op: Op, arrays: set[str], devices: int) -> str:
    match op:
        case Compute():
            return compute_signature(op)
        case Start(source, target):
            return f"start {_space(source.storage, arrays)} -> {_space(target.storage, arrays)}"
        case RemoteStart():
            return "remote_start"
        case Wait() | Await() | SetScalar() | Switch() | Case():
            return _NAMES[type(op)]
        case Signal(_, _, peer):
            return "signal" if peer is None else "signal_peer"
        case Barrier():
            return f"barrier devices={devices}"
        case When(conditions):
            return f"when conditions={len(conditions)}"
        case Loop(_, _, body, unroll):
            return "unrolled" if unroll else f"loop ending in {_last(body)}"
        case Phase():
            return ""


_NAMES: dict[type, str] = {Wait: "wait", Await: "await", SetScalar: "scalar", Switch: "switch", Case: "case"}


def compute_signature(op: Compute) -> str:
    facts = "".join(f" {name}={value}" for name, value in sorted(op.attributes))
    operands = " ".join(f"{o.name}:{o.access}:{o.region.rows}" for o in sorted(op.operands, key=lambda o: o.name))
    return f"{op.kind}{facts} ({operands})"


def _space(storage: str, arrays: set[str]) -> str:
    return "hbm" if storage in arrays else "vmem"


def _last(body: tuple[Op, ...]) -> str:
    """What a body computes last, before its own loops' edges: their results are what the edge waits for."""
    for op in reversed(body):
        if isinstance(op, Compute):
            return op.kind
        if isinstance(op, BLOCKS) and (found := _last(op.body)) != "none":
            return found
    return "none"

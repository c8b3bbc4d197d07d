"""What one operation uses: regions, semaphores and expressions, whatever kind it is. Never what is in its body."""

from __future__ import annotations

from schedc.ir.expr import Expr
from schedc.ir.program import (
    Await,
    Barrier,
    Case,
    Compute,
    Loop,
    Op,
    Operand,
    Phase,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)

_MNEMONICS: dict[type, str] = {
    Start: "start",
    RemoteStart: "remote_start",
    Wait: "wait",
    Signal: "signal",
    Await: "await",
    Barrier: "barrier",
    Compute: "compute",
    SetScalar: "scalar",
    Loop: "loop",
    When: "when",
    Switch: "switch",
    Case: "case",
    Phase: "phase",
}


def mnemonic(op: Op) -> str:
    """What its kind is called in tables of cycles and in signatures."""
    return _MNEMONICS[type(op)]


def operands(op: Op) -> tuple[Operand, ...]:
    """The regions of a computation or of a transfer, which reads its source and writes its target.

    The target of a `RemoteStart` is on the peer.
    """
    match op:
        case Compute(_, found):
            return found
        case Start(source, target) | RemoteStart(source, target):
            return Operand("source", "read", source), Operand("target", "write", target)
        case _:
            return ()


def semaphores(op: Op) -> tuple[SemaphoreRef, ...]:
    """What it gives to or takes from; of a `RemoteStart` its own, then the peer's."""
    match op:
        case Start(_, _, semaphore) | Wait(semaphore) | Signal(semaphore) | Await(semaphore):
            return (semaphore,)
        case RemoteStart(_, _, _, sent, arrived):
            return sent, arrived
        case _:
            return ()


def amount(op: Op) -> int:
    """What it gives to or takes from each of its semaphores: rows of a transfer, or signals."""
    match op:
        case Start(source) | RemoteStart(source):
            return source.rows
        case Wait(_, given) | Signal(_, given) | Await(_, given):
            return given
        case _:
            return 0


def completions(op: Op) -> tuple[tuple[SemaphoreRef, Operand], ...]:
    """Of a transfer, its regions with the semaphore that tells when it is done with each."""
    match op:
        case Start(_, _, semaphore):
            return tuple((semaphore, operand) for operand in operands(op))
        case RemoteStart(_, _, _, sent, arrived):
            return tuple(zip((sent, arrived), operands(op), strict=True))
        case _:
            return ()


def addresses(op: Op) -> tuple[Expr, ...]:
    """Where its regions begin: offsets and slots."""
    return tuple(expr for operand in operands(op) for expr in (operand.region.offset, operand.region.slot))


def values(op: Op) -> tuple[Expr, ...]:
    """What it computes with, sets or decides by."""
    match op:
        case Compute():
            return tuple(value for _, value in op.scalars)
        case SetScalar(_, index, value):
            return index, value
        case Loop(_, trips):
            return (trips,)
        case When(conditions):
            return tuple(side for condition in conditions for side in condition.sides)
        case Switch(selector):
            return (selector,)
        case _:
            return ()


def expressions(op: Op) -> tuple[Expr, ...]:
    """All of them: addresses, values, elements of semaphores, the peer."""
    peer = op.peer if isinstance(op, RemoteStart | Signal) else None
    indices = tuple(ref.index for ref in semaphores(op))
    return (*addresses(op), *values(op), *indices, *(() if peer is None else (peer,)))


def is_remote(op: Op) -> bool:
    """Whether it touches another device."""
    return isinstance(op, RemoteStart | Barrier) or (isinstance(op, Signal) and op.peer is not None)


def transfer_name(op: Start | RemoteStart) -> str:
    """For a person: from where to where."""
    return f"{op.source.storage} -> {op.target.storage}"

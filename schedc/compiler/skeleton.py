"""The shape of a schedule without its sizes: what two programs must share for one to stand for the other."""

from __future__ import annotations

from difflib import unified_diff

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
)

INDENT = "  "


def skeleton(program: Program) -> tuple[str, ...]:
    """One line an operation, indented by nesting: what it does to which storage, without rows, offsets and trip counts.

    Equal neighbours count once: the first eight tiles of a weight and its first two are started by the same line.

    >>> loop layer < 30 {                      loop layer
    ...   phase qkv {                            phase qkv
    ...     loop tile_qkv < 3 {                    loop tile_qkv
    ...       wait weights_arrived[…] rows=64        wait weights_arrived
    """
    return tuple(_lines(program.body, 0))


def differences(full: Program, small: Program) -> tuple[str, ...]:
    """Lines of a diff from the skeleton of `full` to that of `small`; empty if they are equal."""
    before, after = skeleton(full), skeleton(small)
    return tuple(unified_diff(before, after, "full", "small", lineterm="", n=0))[2:]


def _lines(ops: tuple[Op, ...], depth: int) -> list[str]:
    lines: list[str] = []
    last: list[str] = []
    for op in ops:
        text = _text(op)
        inner = _lines(op.body, depth + 1) if isinstance(op, BLOCKS) else []
        these = [f"{INDENT * depth}{text}", *inner]
        if these != last:
            lines += these
        last = these
    return lines


def _text(op: Op) -> str:
    match op:
        case Phase(name, _):
            return f"phase {name}"
        case Loop(counter, _, _, unroll):
            return f"loop {counter}{' unrolled' if unroll else ''}"
        case When(conditions, _):
            return f"when {' and '.join(condition.op for condition in conditions)}"
        case Switch():
            return "switch"
        case Case(value):
            return f"case {value}"
        case Start(source, target, semaphore):
            return f"start {source.storage} -> {target.storage} signals {semaphore.name}"
        case RemoteStart(source, target, _, sent, arrived):
            return f"remote.start {source.storage} -> {target.storage} sent {sent.name} signals {arrived.name}"
        case Wait(semaphore, _):
            return f"wait {semaphore.name}"
        case Signal(semaphore, _, peer):
            return f"signal {semaphore.name}{'' if peer is None else ' on a peer'}"
        case Barrier():
            return "barrier"
        case Await(semaphore, _):
            return f"await {semaphore.name}"
        case SetScalar(array, _, _):
            return f"set {array}"
        case Compute(kind, operands):
            named = ", ".join(f"{operand.name}: {operand.access} {operand.region.storage}" for operand in operands)
            sets = f" sets {', '.join(array for _, array in op.sets)}" if op.sets else ""
            return f"compute {kind}({named}){sets}"

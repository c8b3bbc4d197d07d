"""What a kernel on many devices needs beside its program, and what its program must not do."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.program import Barrier, Op, Phase, Program, RemoteStart, Signal, walk
from schedc.ir.text_print import print_op


def extra_semaphores(program: Program) -> int:
    """How many semaphores the kernel takes of the chip's beside the program's own: barriers share one."""
    return int(any(isinstance(op, Barrier) for op in walk(program.body)))


def is_remote(op: Op) -> bool:
    """Whether it touches another device."""
    return isinstance(op, RemoteStart | Barrier) or (isinstance(op, Signal) and op.peer is not None)


def updates_in_place(program: Program) -> bool:
    """Whether the kernel writes its states where they are, as arguments and not as results.

    XLA copies every result of a kernel that talks to other devices, and a donated argument that is one, in every call.
    """
    talks = any(is_remote(op) for op in walk(program.body))
    return talks and any(array.role == "state" for array in program.arrays)


def device_problems(program: Program) -> Iterator[str]:
    """Why peers cannot be reached: their kernels may not have begun, or their memory be elsewhere."""
    first = next((op for op in walk(program.body) if is_remote(op)), None)
    if first is None:
        return
    states = {array.name for array in program.arrays if array.role == "state"}
    for op in walk(program.body):
        if isinstance(op, RemoteStart) and op.target.storage in states:
            yield (
                f"`{print_op(op)}`: {op.target.storage} may be at another address on the peer; "
                "send to a buffer and let the peer store it"
            )
    if program.devices == 1:
        yield f"`{print_op(first)}`: needs other devices, the program declares one; declare `devices 2` or leave it out"
    elif not isinstance(first, Barrier):
        yield f"`{print_op(first)}`: the peers' kernels may not have begun before the first barrier; put it first"
    elif not _outside_blocks(program.body):
        yield "the first barrier: is in a loop, a condition or a case; put one before it that all run once"


def _outside_blocks(ops: tuple[Op, ...]) -> bool:
    """Whether the first barrier of `ops` is in no block but phases."""
    for op in ops:
        if isinstance(op, Barrier):
            return True
        if isinstance(op, Phase):
            if any(isinstance(inner, Barrier) for inner in walk(op.body)):
                return _outside_blocks(op.body)
        elif hasattr(op, "body") and any(isinstance(inner, Barrier) for inner in walk(op.body)):
            return False
    return False

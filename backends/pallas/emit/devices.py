"""What a kernel on many devices needs beside its program, and what its program must not do."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.placed import placed
from schedc.ir.program import Barrier, Phase, Program, RemoteStart, walk
from schedc.ir.text_print import print_op
from schedc.ir.uses import is_remote


def extra_semaphores(program: Program) -> int:
    """How many semaphores the kernel takes of the chip's beside the program's own: barriers share one."""
    return int(any(isinstance(op, Barrier) for op in walk(program.body)))


def updates_in_place(program: Program) -> bool:
    """Whether the kernel writes its states where they are, as arguments and not as results.

    XLA copies every result of a kernel that talks to other devices, and a donated argument that is one, in every call.
    """
    talks = any(is_remote(op) for op in walk(program.body))
    return talks and any(array.role == "state" for array in program.arrays)


def device_problems(program: Program) -> Iterator[str]:
    """Why peers cannot be reached: their kernels may not have begun, or their memory be elsewhere."""
    first = next((place for place in placed(program.body) if is_remote(place.op)), None)
    if first is None:
        return
    text = f"`{print_op(first.op)}`"
    states = {array.name for array in program.arrays if array.role == "state"}
    for op in walk(program.body):
        if isinstance(op, RemoteStart) and op.target.storage in states:
            yield (
                f"`{print_op(op)}`: {op.target.storage} may be at another address on the peer; "
                "send to a buffer and let the peer store it"
            )
    if program.devices == 1:
        yield f"{text}: needs other devices, the program declares one; declare `devices 2` or leave it out"
    elif not isinstance(first.op, Barrier):
        yield f"{text}: the peers' kernels may not have begun before the first barrier; put it first"
    elif not all(isinstance(block, Phase) for block in first.around):
        yield "the first barrier: is in a loop, a condition or a case; put one before it that all run once"

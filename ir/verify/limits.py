"""What a chip offers, in the terms of the proof: no more than the IR needs to know of a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schedc.ir.program import ROW_BYTES, Program


def _unpadded(rows: int) -> int:
    return rows * ROW_BYTES


def _none(program: Program) -> int:
    return 0


@dataclass(frozen=True)
class Limits:
    vmem_bytes: int
    """Usable bytes of VMEM."""
    smem_bytes: int
    semaphores: int
    """Of all kinds, in one kernel."""
    scratch_bytes: int = 0
    """Bytes of VMEM that the compiler keeps for itself."""
    smem_granule: int = 4
    """Each SMEM array is padded to a multiple of this many bytes."""
    pool_bytes: Callable[[int], int] = _unpadded
    """Bytes of a pool of so many rows, as the compiler pads it."""
    added_semaphores: Callable[[Program], int] = _none
    """Semaphores that the kernel takes beside the declared ones."""

"""What a chip offers, in the terms of the proof: no more than the IR needs to know of a target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    vmem_bytes: int
    """Usable bytes of VMEM."""
    smem_bytes: int
    semaphores: int
    scratch_bytes: int = 0
    """Bytes of VMEM that the compiler keeps for itself."""
    smem_granule: int = 4
    """Each SMEM array is padded to a multiple of this many bytes."""

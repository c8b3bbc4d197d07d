"""Transfers and signals between devices. A device is `{"device": number}`, its place on the mesh's one axis."""

from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def remote_copy(source, target, peer, sent, arrived):
    """A copy to `target` on device `peer`: `sent` is this device's semaphore, `arrived` the peer's."""
    return pltpu.make_async_remote_copy(source, target, sent, arrived, device_id={"device": peer})


def signal_peer(semaphore, amount, peer):
    pl.semaphore_signal(semaphore, amount, device_id={"device": peer})


def signal_peers(semaphore_of, rank, devices):
    """Add 1 to a semaphore of every other device; `semaphore_of(distance)` says which."""
    for distance in range(1, devices):
        signal_peer(semaphore_of(distance), 1, lax.rem(rank + distance, devices))


def enter(rank, devices, seen=None):
    """The first barrier: no peer's memory may be touched before its kernel has begun.

    It counts on the one semaphore that all kernels share. So no device may be in its next kernel, counting there again,
    before every device is past this barrier: each tells the others on `seen` that it is, and awaits that in `leave`.
    Two devices need none of this: each has one peer, whose signals cannot be taken for another's.
    """
    begun = pltpu.get_barrier_semaphore()
    signal_peers(lambda distance: begun, rank, devices)
    pl.semaphore_wait(begun, devices - 1)
    if seen is not None:
        signal_peers(lambda distance: seen.at[0], rank, devices)


def leave(seen, devices):
    """The end of the kernel: every device is past `enter`."""
    pl.semaphore_wait(seen.at[0], devices - 1)


def meet(met, rank, devices):
    """A later barrier, also in a loop: a semaphore for each peer, so a fast peer cannot stand in for a slow one."""
    signal_peers(lambda distance: met.at[distance - 1], rank, devices)
    for distance in range(1, devices):
        pl.semaphore_wait(met.at[distance - 1], 1)

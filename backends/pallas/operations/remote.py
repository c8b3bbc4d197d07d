"""Transfers and signals between devices. A device is `{"device": number}`, its place on the mesh's one axis."""

from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def remote_copy(source, target, peer, sent, arrived):
    """A copy to `target` on device `peer`: `sent` is this device's semaphore, `arrived` the peer's."""
    return pltpu.make_async_remote_copy(source, target, sent, arrived, device_id={"device": peer})


def signal_peer(semaphore, amount, peer):
    pl.semaphore_signal(semaphore, amount, device_id={"device": peer})


def barrier(rank, devices):
    """Tell every other device, and go on when as many have told this one: all have come as far, and have begun.

    The semaphore is the one that kernels share, and serves every barrier: a device signals for the next one only after
    this one, which the first to pass can do only with a signal from each. So all have come before any goes on, also
    where a fast device's next signal is counted for a slow one's.
    """
    semaphore = pltpu.get_barrier_semaphore()
    for distance in range(1, devices):
        signal_peer(semaphore, 1, lax.rem(rank + distance, devices))
    pl.semaphore_wait(semaphore, devices - 1)

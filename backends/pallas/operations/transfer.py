"""Transfers, waits and slots: the operations that every kernel uses."""

from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

copy = pltpu.make_async_copy


def wait(semaphore, words, rows):
    """Take `rows` rows off a DMA semaphore: a copy of that size is described, never started, and waited for."""
    place = words.at[pl.ds(0, rows)]
    copy(place, place, semaphore).wait()


def slots(pool, address, rows):
    """The slots of a buffer: `slots(...)(i)` are the rows of slot i."""

    def slot_view(slot):
        first = address + slot * rows
        return pool.at[pl.ds(first if isinstance(slot, int) else pl.multiple_of(first, 8), rows)]

    return slot_view


def signal(semaphore, amount):
    pl.semaphore_signal(semaphore, amount)


def await_signal(semaphore, amount):
    pl.semaphore_wait(semaphore, amount)

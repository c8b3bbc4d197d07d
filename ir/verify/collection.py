"""The cyclic garbage collector stands still during a proof: it would look at millions of live objects for nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """What a proof makes lives to its end or is freed by counting references (`Machine.release`)."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()

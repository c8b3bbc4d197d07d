"""What took long to compute and may be asked for again: kept in the user's cache, by everything it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import environ

from schedc.cache.folder import cache_folder
from schedc.cache.store import Entry, Store

__all__ = ["Entry", "Store", "active", "cache_folder", "found", "switched_off"]

_OFF: ContextVar[bool] = ContextVar("schedc_cache_off", default=False)
_FOUND: ContextVar[list[str] | None] = ContextVar("schedc_cache_found", default=None)


RESULTS = "results"
"""Of the cache folder, what is kept here."""


def active() -> Store | None:
    """The cache, unless it is off: by `switched_off`, or by the variable SCHEDC_NO_CACHE."""
    off = _OFF.get() or bool(environ.get("SCHEDC_NO_CACHE"))
    return None if off else Store(cache_folder() / RESULTS, _FOUND.get())


@contextmanager
def switched_off(off: bool = True) -> Iterator[None]:
    """`--no-cache`: nothing is looked up and nothing kept."""
    token = _OFF.set(off)
    try:
        yield
    finally:
        _OFF.reset(token)


@contextmanager
def found() -> Iterator[list[str]]:
    """Collects the kinds of what was found in the cache instead of being computed."""
    kinds: list[str] = []
    token = _FOUND.set(kinds)
    try:
        yield kinds
    finally:
        _FOUND.reset(token)

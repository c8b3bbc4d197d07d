"""Where the cache is."""

from __future__ import annotations

from os import environ
from pathlib import Path


def cache_folder() -> Path:
    """$SCHEDC_CACHE, else the folder `schedc` of $XDG_CACHE_HOME or ~/.cache."""
    given = environ.get("SCHEDC_CACHE")
    return Path(given) if given else Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "schedc"

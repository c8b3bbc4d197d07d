"""The compiler of the search's inner functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

_numba: ModuleType | None
try:
    _numba = import_module("numba")
except ImportError:
    _numba = None


def compiled(function: Function) -> Function:
    """The function as machine code, kept on disk between runs; the function itself if numba is not installed.

    numba knows a function's code as out of date by the function's own file, but it has that of other files in it.
    So the code is kept in a folder named by what all files say.
    """
    if _numba is None:
        return function
    before = _numba.config.CACHE_DIR
    folder = _folder(before)
    try:
        _numba.config.CACHE_DIR = str(folder) if folder is not None else before
        return _numba.njit(cache=folder is not None, error_model="numpy")(function)
    finally:
        _numba.config.CACHE_DIR = before


def _folder(configured: str) -> Path | None:
    """Where machine code of these sources is kept: the first folder that can be written, or none."""
    here = Path(__file__).parent
    sources = b"".join(path.read_bytes() for path in sorted(here.glob("*.py")))
    name = f"search-{sha256(sources).hexdigest()[:16]}"
    parents = [Path(configured)] if configured else [here / "__pycache__", Path.home() / ".cache" / "schedc"]
    for parent in parents:
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            return parent / name
    return None

"""The compiler of inner functions, such as the search's."""

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


def compiler(sources: Path, name: str, inline: bool = False) -> Callable[[Function], Function]:
    """What makes machine code of the functions of a folder, kept on disk between runs under `name`.

    numba knows a function's code as out of date by the function's own file, but it has that of other files in it.
    So the code is kept in a folder named by what all files say. Without numba a function stays itself.
    With `inline` its code becomes part of its callers': passing it many arrays costs nothing.
    """

    def compiled(function: Function) -> Function:
        if _numba is None:
            return function
        before = _numba.config.CACHE_DIR
        folder = _folder(before, sources, name)
        try:
            _numba.config.CACHE_DIR = str(folder) if folder is not None else before
            placed = "always" if inline else "never"
            return _numba.njit(cache=folder is not None, error_model="numpy", inline=placed)(function)
        finally:
            _numba.config.CACHE_DIR = before

    return compiled


def _folder(configured: str, sources: Path, name: str) -> Path | None:
    """Where machine code of these sources is kept: the first folder that can be written, or none."""
    texts = b"".join(path.read_bytes() for path in sorted(sources.rglob("*.py")))
    own = f"{name}-{sha256(texts).hexdigest()[:16]}"
    parents = [Path(configured)] if configured else [sources / "__pycache__", Path.home() / ".cache" / "schedc"]
    for parent in parents:
        try:
            (parent / own).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / own, os.W_OK):
            return parent / own
    return None


compiled = compiler(Path(__file__).parent, "search")

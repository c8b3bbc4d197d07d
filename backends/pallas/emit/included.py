"""The source of the operations a kernel uses, with what they call, cut out of `operations/`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from schedc.backends.pallas.errors import EmitError
from schedc.ir.program import Compute

_FOLDER = "schedc.backends.pallas.operations"

OPERATION_ATTRIBUTES = ("product",)
"""Attributes whose text is the name of another operation, which the operation calls."""


def named_operations(op: Compute) -> set[str]:
    """The computation's own operation, and those its attributes name."""
    return {op.kind} | {str(value) for name, value in op.attributes if name in OPERATION_ATTRIBUTES}


@dataclass(frozen=True)
class Definition:
    """A top-level function or constant of an operations module."""

    name: str
    order: tuple[str, int]
    source: str
    uses: frozenset[str]
    parameters: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    """The parameters without a default."""


@cache
def definitions() -> dict[str, Definition]:
    """Every top-level definition of `operations/`, by name. `words.py`, which all others use, comes first."""
    found: dict[str, Definition] = {}
    for path, text in _modules():
        for node in ast.parse(text).body:
            name = _defined(node)
            if name is None:
                continue
            if name in found:
                raise EmitError(f"{path} defines {name} again")
            source = ast.get_source_segment(text, node) or ""
            order = ("" if path == "words.py" else path, node.lineno)
            uses = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            parameters, required = _parameters(node)
            found[name] = Definition(name, order, source, uses - {name}, parameters, required)
    return found


def _modules() -> Iterator[tuple[str, str]]:
    """Path within `operations/` and text of every module, in order of the paths."""
    found = {}
    folders = [("", resources.files(_FOLDER))]
    for prefix, folder in folders:
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.endswith(".py") and entry.name != "__init__.py":
                found[f"{prefix}{entry.name}"] = entry.read_text(encoding="utf-8")
    yield from sorted(found.items())


def _parameters(node: ast.stmt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All parameters of a function, and those without a default."""
    if not isinstance(node, ast.FunctionDef):
        return (), ()
    positional, named = node.args.args, node.args.kwonlyargs
    required = positional[: len(positional) - len(node.args.defaults)]
    required = required + [a for a, default in zip(named, node.args.kw_defaults, strict=True) if default is None]
    return tuple(a.arg for a in positional + named), tuple(a.arg for a in required)


def _defined(node: ast.stmt) -> str | None:
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def included(kinds: set[str]) -> list[Definition]:
    """These operations and all they use, in reading order. Raises EmitError for an unknown kind."""
    known = definitions()
    unknown = sorted(kind for kind in kinds if kind not in known)
    if unknown:
        raise EmitError(f"no operation is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    wanted: set[str] = set()
    queue = list(kinds)
    while queue:
        name = queue.pop()
        if name not in wanted:
            wanted.add(name)
            queue += [use for use in known[name].uses if use in known]
    return sorted((known[name] for name in wanted), key=lambda definition: definition.order)

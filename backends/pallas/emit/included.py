"""The source of the operations a kernel uses, with what they call, cut out of `operations/`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib import resources

from schedc.backends.pallas.errors import EmitError

_FOLDER = "schedc.backends.pallas.operations"


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
    folder = resources.files(_FOLDER)
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".py") or entry.name == "__init__.py":
            continue
        text = entry.read_text()
        for node in ast.parse(text).body:
            name = _defined(node)
            if name is None:
                continue
            if name in found:
                raise EmitError(f"{entry.name} defines {name} again")
            source = ast.get_source_segment(text, node) or ""
            order = ("" if entry.name == "words.py" else entry.name, node.lineno)
            uses = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            parameters, required = _parameters(node)
            found[name] = Definition(name, order, source, uses - {name}, parameters, required)
    return found


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

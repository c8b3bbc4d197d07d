"""What a module's source says of itself: classes, their fields, and the texts beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    default: str
    text: str


@dataclass(frozen=True)
class Documented:
    """A class or function: its text, and its fields or its signature."""

    name: str
    text: str
    fields: tuple[Field, ...] = ()
    signature: str = ""


def module_text(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def classes(path: Path) -> Iterator[Documented]:
    """Public classes with a text or fields, in the order of the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield Documented(node.name, ast.get_docstring(node) or "", tuple(_fields(node.body)))


def functions(path: Path) -> Iterator[Documented]:
    """Public functions with a text, in the order of the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node):
            yield Documented(node.name, ast.get_docstring(node) or "", signature=ast.unparse(node.args))


def methods(path: Path, name: str) -> Iterator[Documented]:
    """Public methods and properties of a class."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    arguments = ast.unparse(inner.args).removeprefix("self").removeprefix(", ")
                    is_property = any("property" in ast.unparse(d) for d in inner.decorator_list)
                    text = ast.get_docstring(inner) or ""
                    yield Documented(inner.name, text, signature="" if is_property else f"({arguments})")


def _fields(body: list[ast.stmt]) -> Iterator[Field]:
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            has_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = str(after.value.value) if has_text else ""  # type: ignore[union-attr]
            default = "" if node.value is None else _default(node.value)
            yield Field(node.target.id, ast.unparse(node.annotation), default, " ".join(text.split()))


def _default(value: ast.expr) -> str:
    text = ast.unparse(value)
    return text.partition("lambda: ")[2].rstrip(")") + ")" if text.startswith("field(default_factory=lambda") else text

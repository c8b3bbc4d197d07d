"""The architecture: imports go one way, and nothing heavy is imported before it must."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMON = {"schedc.errors", "schedc.names", "schedc.validation", "schedc.files", "schedc.yaml_text", "schedc"}

ALLOWED: dict[str, set[str]] = {
    "ir": {"schedc.ir"},
    "schedc/spec": {"schedc.spec", "schedc.model_specs"},
    "schedc/target": {"schedc.target", "schedc.spec.base"},
    "schedc/cache": {"schedc.cache"},
    "schedc/weights": {"schedc.spec", "schedc.weights", "schedc.cache"},
    "schedc/reference": {"schedc.spec", "schedc.weights", "schedc.reference"},
    "schedc/placement": {"schedc.spec", "schedc.target", "schedc.placement"},
    "schedc/lower": {
        "schedc.spec", "schedc.target", "schedc.placement", "schedc.ir", "schedc.weights.layout",
        "schedc.weights.formats", "schedc.lower",
    },
    "schedc/schedule": {
        "schedc.spec", "schedc.target", "schedc.placement", "schedc.ir", "schedc.weights.layout",
        "schedc.weights.formats", "schedc.lower", "schedc.schedule",
    },
    "schedc/cost": {"schedc.spec", "schedc.target", "schedc.ir", "schedc.lower", "schedc.schedule", "schedc.cost"},
    "backends": {"schedc.ir", "schedc.target", "schedc.backends", "schedc.cache"},
}  # fmt: skip


def imports(path: Path) -> Iterator[str]:
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." if node.level else ""
            yield base.join((".".join(package), node.module or "")) if node.level else node.module or ""


def within(name: str, allowed: set[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_layer_imports_only_what_stands_below_it(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in imports(path)
        if (name == "schedc" or name.startswith("schedc.")) and name not in COMMON and not within(name, ALLOWED[folder])
    ]
    assert not wrong


def test_ir_imports_nothing_but_the_standard_library_numpy_and_networkx() -> None:
    known = {*sys.stdlib_module_names, "numpy", "networkx", "schedc"}
    wrong = [
        f"{path.name}: {name}"
        for path in (ROOT / "ir").rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] not in known
    ]
    assert not wrong


@pytest.mark.parametrize("folder", ["ir", "schedc/lower", "schedc/schedule", "schedc/cost"])
def test_no_pass_names_a_chip_or_a_model(folder: str) -> None:
    names = ("tpu7x", "v6e", "v5p", "v5e", "kimi", "llama", "qwen", "smollm", "mistral", "starcoder")
    wrong = [
        f"{path.relative_to(ROOT)}: {node.value!r}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(_without_docstrings(ast.parse(path.read_text())))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and any(n in node.value.lower() for n in names)
    ]
    assert not wrong


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0].value.value = ""
    return tree


def test_compiling_without_the_tpu_compiler_never_imports_jax() -> None:
    code = (
        "import sys; from schedc.compiler.pipeline import Request, compile_model; "
        "from schedc.lower.graph import StepShape; from schedc.spec.load import load_spec; "
        "from schedc.target.target import parse_target; "
        "compile_model(Request(load_spec('smollm2-135m'), parse_target('tpu7x'), StepShape(1, 256))); "
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_file_of_ours_is_longer_than_500_lines() -> None:
    folders = ("ir", "schedc", "backends", "benchmarks", "examples", "tests")
    long = [
        f"{path.relative_to(ROOT)}: {lines}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "golden" not in path.parts and (lines := path.read_text().count("\n")) > 500
    ]
    assert not long


def test_files_of_tests_in_folders_that_are_no_packages_have_names_of_their_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert sorted(names) == sorted(set(names))

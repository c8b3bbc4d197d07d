"""The reference of the IR: its nodes, the rules of its proof, and the operations that kernels are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate.source import Documented, classes, functions, module_text

ROOT = Path(__file__).parents[2]
RULES = (ROOT / "tests" / "ir" / "rules.txt", ROOT / "tests" / "ir" / "rules_devices.txt")


def page() -> str:
    return "\n".join((*_nodes(), *_rules(), *_operations())) + "\n"


def _nodes() -> Iterator[str]:
    path = ROOT / "ir" / "program.py"
    yield "# The IR\n"
    yield "Made from `ir/program.py`, the cases of the proof's tests and `backends/pallas/operations`. How a program is"
    yield "written down is said in [the text form](../text_form.md).\n"
    yield module_text(path) + "\n"
    yield "## Nodes\n"
    for node in classes(path):
        yield f"### {node.name}\n"
        yield from ([node.text + "\n"] if node.text else [])
        yield from _field_table(node)


def _field_table(node: Documented) -> Iterator[str]:
    if node.fields:
        yield "| field | type | default | |\n|---|---|---|---|"
        for field in node.fields:
            default = f"`{field.default}`" if field.default else ""
            yield f"| `{field.name}` | `{_cell(field.type)}` | {default} | {_cell(field.text)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _rules() -> Iterator[str]:
    yield "## Rules of the proof\n"
    yield "What is refused, each with the first of its cases in the tests: the operations, and what is said of them."
    yield "`a`, `b` and `c` are VMEM buffers, `w` and `out` arrays in HBM, `s` semaphores.\n"
    for rule, (fact, operations, message) in sorted(_cases().items()):
        yield f"### {rule}\n\n{fact.capitalize()}:\n\n```ir\n{operations}\n```\n\n```text\n{message}\n```\n"


def _cases() -> dict[str, tuple[str, str, str]]:
    """Rule → (fact, operations, message) of its first case."""
    found: dict[str, tuple[str, str, str]] = {}
    for path in RULES:
        for block in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            fact, _, rest = block.partition("\n")
            operations, _, refusals = rest.partition("\n=> ")
            message = refusals.strip().splitlines()[0] if refusals else ""
            rule = re.match(r"[a-z]+(-[a-z]+)+(?=: )", message)
            if rule:
                found.setdefault(rule[0], (fact, operations.strip(), message))
    return found


def _operations() -> Iterator[str]:
    folder = ROOT / "backends" / "pallas" / "operations"
    yield "## Operations\n"
    yield "What a `compute` may name. Arguments before `*` are operands and scalars, those after it static attributes."
    yield "The source of those that a kernel uses stands in its file.\n"
    for path in sorted(folder.rglob("*.py")):
        documented = list(functions(path))
        if documented:
            name = path.relative_to(folder).with_suffix("").as_posix()
            yield f"### {name}\n\n{module_text(path).partition(chr(10) * 2)[0]}\n"
            for function in documented:
                yield f"- `{function.name}({function.signature})`: {' '.join(function.text.split())}"
            yield ""

"""The reference of the Python API, from its texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.generate.source import classes, functions, methods, module_text

API = Path(__file__).parents[2] / "schedc" / "api.py"


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Python\n"
    yield (
        module_text(API)
        .replace("    import schedc", "```python\nimport schedc\n")
        .replace("    made", "made")
        .replace("made.verify()\n", "made.verify()\n```\n")
        + "\n"
    )
    for function in functions(API):
        yield f"## {function.name}\n\n```python\nschedc.{function.name}({function.signature})\n```\n\n{function.text}\n"
    for found in classes(API):
        yield f"## {found.name}\n\n{found.text}\n"
        for method in methods(API, found.name):
            yield f"- `.{method.name}{method.signature}`: {' '.join(method.text.split())}"
        yield ""

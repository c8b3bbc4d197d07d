"""What becomes of every published config: `python tests/spec/configs_page.py` writes docs/configs.md."""

from __future__ import annotations

import json
from pathlib import Path

from schedc.errors import ConfigError
from schedc.lower.unsupported import unsupported
from schedc.spec.importers.import_config import Imported, import_with_report
from schedc.spec.storage import FAMILIES

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "tests" / "data" / "configs"
PAGE = ROOT / "docs" / "configs.md"
DEVICES = 8

_HEAD = """# Published configs

What `schedc import` makes of the {count} configs of `tests/data/configs` (where each is from: `SOURCES.tsv` there):
{imported} are imported, {refused} are refused. Made by `python tests/spec/configs_page.py`; a test holds the page to
what the importers do.
"""

_IMPORTED = f"""
## Imported

*Formats*: how the projections of each weight family are stored, where that is not bf16. *Left out*: what of the config
the spec does without, as the import says. *Kernel lacks*: what is refused by its key when a kernel for {DEVICES}
devices is asked for.

| config | model type | layers | parameters | formats | left out | kernel lacks |
|---|---|---|---|---|---|---|
"""

_REFUSED = """
## Refused

Every key that a spec cannot express, and why.

| config | model type | keys |
|---|---|---|
"""


def page() -> str:
    """The whole of docs/configs.md."""
    imported, refused = [], []
    for path in sorted(CONFIGS.glob("*.json"), key=lambda path: path.stem.lower()):
        data = json.loads(path.read_text())
        kind = data.get("text_config", data)["model_type"]
        try:
            imported.append(_row(path.stem, kind, *_of_spec(import_with_report(path))))
        except ConfigError as error:
            refused.append(_row(path.stem, kind, "<br>".join(_by_reason(error.problems))))
    head = _HEAD.format(count=len(imported) + len(refused), imported=len(imported), refused=len(refused))
    return head + _IMPORTED + "".join(imported) + _REFUSED + "".join(refused)


def _of_spec(found: Imported) -> tuple[str, ...]:
    spec = found.spec
    formats = {family: spec.quantization.format(family) for family in FAMILIES}
    quantised = {family: format for family, format in formats.items() if format != "bf16"}
    missing = dict.fromkeys(
        line.split(".", 2)[-1] if line.startswith("layers") else line for line in unsupported(spec, DEVICES)
    )
    return (
        str(spec.num_layers),
        f"{sum(spec.parameter_counts().values()) / 1e9:.1f} B",
        ", ".join(f"{family} {format}" for family, format in quantised.items()) or "–",
        "<br>".join(_code(line.replace(": left out: ", ": ")) for line in found.left_out) or "–",
        "<br>".join(_code(line) for line in missing) or "–",
    )


def _by_reason(problems: tuple[str, ...] | list[str]) -> list[str]:
    """One line a reason, with all keys that have it."""
    keys: dict[str, list[str]] = {}
    for problem in problems:
        key, _, reason = problem.partition(": ")
        reason = reason.split(": ", 1)[1] if key == "model_type" and ": " in reason else reason
        keys.setdefault(reason, []).append(f"`{key}`")
    return [f"{', '.join(found)}: {reason}" for reason, found in keys.items()]


def _code(line: str) -> str:
    key, _, rest = line.partition(": ")
    return f"`{key}`: {rest}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())

"""Every command of docs/tables.md runs."""

import shlex
from pathlib import Path

import pytest

from .conftest import Command

DOCS = Path(__file__).parents[2] / "docs" / "tables.md"
COMMANDS = [line for line in DOCS.read_text().split("\n") if line.startswith("schedc ")]
ASKS_THE_COMPILER = "schedc inspect llo"


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.kernel if c.startswith(ASKS_THE_COMPILER) else ()) for c in COMMANDS]
)  # fmt: skip
def test_every_command_of_the_page_runs(schedc: Command, command: str) -> None:
    if " out/" in command:
        assert schedc("compile", "smollm2-135m", "--no-check").code == 0
    said = schedc(*shlex.split(command)[1:])
    assert (said.code, said.err) == (0, "") and said.out

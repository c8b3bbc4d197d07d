"""The command in this process, as a user sees it: exit code, stdout, stderr."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from schedc.cli.main import app

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture
def schedc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs in an empty folder. What is not the user's fault is raised."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> Said:
        result = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="schedc")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    return run


def refused(said: Said, code: int = 2) -> str:
    """The message of a refusal, which is all that was printed."""
    assert (said.code, said.out) == (code, ""), said
    assert said.err.startswith("error: "), said
    return said.err.removeprefix("error: ").removesuffix("\n")

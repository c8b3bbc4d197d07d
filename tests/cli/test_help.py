"""Help is quick, because it imports little, and complete."""

import subprocess
import sys
from typing import get_type_hints

import pytest

from .conftest import Command

HEAVY = ("jax", "jaxlib", "libtpu", "numpy", "networkx", "pydantic", "yaml", "tokenizers", "gguf", "safetensors")
COMMANDS = (
    "cache",
    "check",
    "compile",
    "diff",
    "doctor",
    "emit",
    "explain",
    "explore",
    "import",
    "inspect",
    "models",
    "pack",
    "policies",
    "published",
    "run",
    "targets",
    "verify",
)

GROUPS = ("cache", "explain", "inspect")
INSIDE = ("cache look", "cache clear", "inspect transfers", "inspect phases", "explain step")


def imported_by(arguments: list[str]) -> str:
    code = (
        "import sys\n"
        "from schedc.cli.main import main\n"
        f"sys.argv = ['schedc', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert imported_by(arguments) == ""


@pytest.mark.parametrize(
    "arguments",
    [["compile", "--help"], ["check", "--help"], ["emit", "--help"], ["run", "--help"], ["inspect", "ir", "--help"]],
)
def test_help_of_a_command_imports_no_more_than_typer_does(arguments: list[str]) -> None:
    assert imported_by(arguments) in ("", "pydantic")  # newer typer checks arguments with pydantic


def test_help_names_every_command(schedc: Command) -> None:
    said = schedc("--help")
    assert said.code == 0
    assert [name for name in COMMANDS if f"│ {name} " not in said.out] == []


ALONE = tuple(name for name in COMMANDS if name not in GROUPS)


@pytest.mark.parametrize("command", [line.split() for line in (*ALONE, *INSIDE)])
def test_help_of_every_command_has_an_example_and_json(schedc: Command, command: list[str]) -> None:
    said = schedc(*command, "--help")
    assert said.code == 0
    assert "Example" in said.out and "--json" in said.out


def test_the_default_policy_is_that_of_the_library() -> None:
    from schedc.cli.options import ScheduleOptions
    from schedc.schedule.registry import DEFAULT_POLICY
    from schedc.spec.load import load_spec

    assert ScheduleOptions().request(load_spec("smollm2-135m")).policy == DEFAULT_POLICY
    (option,) = get_type_hints(ScheduleOptions, include_extras=True)["policy"].__metadata__
    assert option.show_default == DEFAULT_POLICY

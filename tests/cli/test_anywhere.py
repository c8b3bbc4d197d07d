"""--quiet, --verbose, their short forms and --json stand before and after the subcommand; values of options stay."""

import pytest
import typer

from schedc.cli.anywhere import arranged
from schedc.cli.main import app

from .conftest import Command, refused

DIFF = ("diff", "smollm2-135m", "smollm2-135m", "--context", "256")


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
@pytest.mark.parametrize("place", [0, 1, 2, len(DIFF)])
def test_verbose_is_heard_wherever_it_stands(schedc: Command, flag: str, place: int) -> None:
    said = schedc(*DIFF[:place], flag, *DIFF[place:])
    assert said.code == 0 and [line.split(":")[0] for line in said.err.splitlines()] == ["schedule"] * 2 + ["compare"]


@pytest.mark.parametrize("arguments", [("-q", "models", "-v"), ("models", "-q", "--verbose"), ("models", "-qv")])
def test_quiet_and_verbose_are_told_apart_wherever_they_stand(schedc: Command, arguments: tuple[str, ...]) -> None:
    said = schedc(*arguments)
    assert said.code == 2 and ("cannot be given together" in said.err or "No such option" in said.err)


@pytest.mark.parametrize("arguments", [("--json", "targets"), ("targets", "--json")])
def test_json_is_asked_for_before_and_after_the_subcommand(schedc: Command, arguments: tuple[str, ...]) -> None:
    assert isinstance(schedc(*arguments).json(), list)


def test_json_before_a_subcommand_of_a_group_and_of_a_failure(schedc: Command) -> None:
    assert schedc("inspect", "--json", "phases", *DIFF[2:]).json()["title"] == "phases"
    said = schedc("--json", "compile", "nonsense")
    assert said.code == 2 and said.json()["error"]["kind"] == "input"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("run -v m --prompt -v", "-v run m --prompt -v"),
        ("run m -p --json -q", "-q run m -p --json"),
        ("inspect phases m --where -q", "inspect phases m --where -q"),
        ("--json compile m --no-check --quiet", "--quiet compile m --no-check --json"),
        ("compile m -- -q --json", "compile m -- -q --json"),
    ],
)
def test_what_is_the_value_of_an_option_is_no_flag(given: str, expected: str) -> None:
    found, _ = arranged(typer.main.get_command(app), given.split())
    assert found == expected.split()


def test_a_value_is_not_taken_for_asking_for_json(schedc: Command) -> None:
    assert refused(schedc("inspect", "phases", *DIFF[2:], "--where", "--json")).startswith(
        "--where --json: must be like"
    )

"""Progress, colours and completion are where they belong."""

import io
import os
import subprocess
import sys

import pytest

from schedc.cli.piped import Trimmed

from .conftest import Command, refused


def test_verbose_leaves_a_line_for_every_stage(schedc: Command) -> None:
    arguments = ("compile", "smollm2-135m", "--no-check", "--context", "256")
    said = schedc("--verbose", *arguments)
    assert [line.split(":")[0] for line in said.err.splitlines()] == ["read the spec", "schedule and prove"]
    assert schedc("--quiet", *arguments).err == ""


def test_quiet_and_verbose_exclude_each_other(schedc: Command) -> None:
    assert refused(schedc("-q", "-v", "models")) == "--quiet and --verbose cannot be given together"


TABLES = ("models", "policies", "inspect phases M", "inspect vmem M", "inspect decisions M",
          "inspect placement M --devices 2", "explain step M", "diff M M --b --taps=3", "sweep M")  # fmt: skip


@pytest.mark.parametrize("line", TABLES)
def test_no_line_of_what_is_piped_ends_in_spaces(schedc: Command, line: str) -> None:
    words = line.replace("M", "smollm2-135m --context 256", 1).replace("M", "smollm2-135m")
    said = schedc(*words.split())
    assert said.code == 0 and said.out.count("\n") > 2
    assert [text for text in said.out.split("\n") if text != text.rstrip()] == []


def test_spaces_before_the_end_of_a_line_are_left_out_wherever_writes_end() -> None:
    text = "a  b   \n\n  c \n   "
    for cut in range(len(text)):
        file = io.StringIO()
        trimmed = Trimmed(file)
        assert trimmed.write(text[:cut]) + trimmed.write(text[cut:]) == len(text)
        assert file.getvalue() == "a  b\n\n  c\n"


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "schedc.cli.main", *arguments]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | environment)


def test_nothing_is_coloured_where_there_is_no_terminal() -> None:
    for made in (command("models"), command("compile", "smollm2")):
        assert "\x1b" not in made.stdout + made.stderr


def test_no_color_is_heeded_on_a_terminal() -> None:
    for environment, coloured in (({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
        words = ["script", "-qec", f"{sys.executable} -m schedc.cli.main compile smollm2", "/dev/null"]
        made = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"TERM": "xterm"} | environment)
        assert ("\x1b[31m" in made.stdout) == coloured

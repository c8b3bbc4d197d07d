"""docs/text_form.md says what is so: its programs are read, its output is what the command prints."""

import re
from pathlib import Path

import pytest

from schedc.ir.text_parse import parse_program

from .conftest import Command
from .test_check import EXAMPLE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "text_form.md").read_text()
README = (ROOT / "README.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def rows(heading: str) -> list[str]:
    """The code of the first column of the table below a heading."""
    table = PAGE.partition(f"### {heading}\n")[2].partition("\n###")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| `")]


def stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_its_program_is_that_of_the_example() -> None:
    (block,) = blocks(PAGE, "ir")
    assert parse_program(block) == parse_program(EXAMPLE)


@pytest.mark.parametrize("page", [PAGE, README], ids=["page", "README"])
def test_its_output_is_what_the_command_prints(
    schedc: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    lines = EXAMPLE.splitlines()
    late = next(number for number, line in enumerate(lines) if line.startswith("    wait"))
    lines[late : late + 2] = lines[late + 1], lines[late]
    (tmp_path / "late.ir").write_text("\n".join(lines))
    (tmp_path / "typo.ir").write_text(EXAMPLE.replace(" signals arrived[0]", "", 1))
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "double_buffer.ir").write_text(EXAMPLE)
    files = {"examples/double_buffer.ir": 0, "error: late.ir": 1, "error: typo.ir": 2}
    shown = [block for block in blocks(page, "text") if block.startswith(tuple(files))]
    assert shown
    for block in shown:
        start = next(start for start in files if block.startswith(start))
        said = schedc("check", start.removeprefix("error: "))
        assert said.code == files[start]
        assert stripped(said.out + said.err).startswith(stripped(block))


@pytest.mark.parametrize("row", rows("Declarations"))
def test_its_declarations_are_read(row: str) -> None:
    parse_program(f"program p {{\n{row.strip('`')}\n}}")


@pytest.mark.parametrize("row", rows("Operations"))
def test_its_operations_are_read(row: str) -> None:
    text = row.replace("` … `", "\n").replace("` `", "\n").strip("`")
    assert len(parse_program(f"program p {{\n{text}\n}}").body) == 1


def test_it_has_every_word_of_the_grammar() -> None:
    from schedc.ir.text_parse import DECLARATIONS, OPERATIONS

    told = {row.strip("`").split()[0] for row in (*rows("Declarations"), *rows("Operations"))}
    assert told == {*DECLARATIONS, *OPERATIONS}

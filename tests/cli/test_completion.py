"""What the shell completes, asked as bash does."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from schedc.cli.main import app

from .conftest import Command


def completed(line: str) -> list[str]:
    """The words for the last one of the line, which may be begun."""
    words = line.split()
    at = len(words) if line.endswith(" ") else len(words) - 1
    environment = {"_SCHEDC_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(at)}
    return CliRunner().invoke(app, [], env=os.environ | environment, prog_name="schedc").stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("schedc compile kimi-k3", {"kimi-k3", "kimi-k3-mini"}),
        ("schedc compile kimi-k3 --policy double", {"double_buffer"}),
        ("schedc compile qwen3.5-27b --plan qwen", {"qwen3.5-27b"}),
        ("schedc compile kimi-k3 --target v6", {"v6e:2x2"}),
        ("schedc explore kimi-k3 --policies ring,double", {"ring,double_buffer"}),
        ("schedc inspect timeline smollm2-135m --against just", {"just_in_time"}),
        ("schedc inspect transfers smollm2-135m --sort st", {"stall"}),
        ("schedc inspect semaphores smollm2-135m --where ta", {"taken"}),
        ("schedc inspect phases smollm2-135m --columns phase,st", {"phase,stall"}),
        ("schedc inspect placement smollm2-135m --columns pa", {"padding"}),
        ("schedc inspect kernel smollm2-135m --phase att", {"attend"}),
        ("schedc inspect kernel kimi-k3 --target tpu7x:2x2x4 --phase attend_1", {"attend_1_2"}),
        ("schedc inspect kernel nonsense --phase ", set()),
        ("schedc verify smollm2-135m --dump a", {"activation", "all", "attend"}),
    ],
)
def test_what_is_begun_is_completed(schedc: Command, line: str, expected: set[str]) -> None:
    found = set(completed(line))
    assert expected <= found if line.endswith("attend_1") else found == expected


def test_folders_programs_and_their_phases_are_completed(schedc: Command, tmp_path: Path) -> None:
    (tmp_path / "out" / "made").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "mine.ir").write_text(
        "program p {\n  phase first {\n  }\n  loop t < 2 {\n    phase second {\n    }\n  }\n}\n"
    )
    (tmp_path / "out" / "made" / "program.ir").write_bytes((tmp_path / "mine.ir").read_bytes())
    assert {"mine.ir", "out/"} <= set(completed("schedc inspect phases ")) - {"notes.txt", ".hidden/"}
    assert completed("schedc inspect phases mi")[-1] == "mine.ir"
    assert completed("schedc inspect phases out/") == ["out/made/"]
    assert completed("schedc inspect kernel mine.ir --phase ") == ["first", "second"]
    assert completed("schedc inspect llo out/made se") == ["second"]
    assert completed("schedc inspect llo nowhere/x ") == []

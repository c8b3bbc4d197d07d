"""`schedc published`: what it prints, and what it refuses."""

from pathlib import Path

import pytest

from schedc.ir.text_parse import parse_program
from tests.cli.conftest import Command, refused, schedc  # noqa: F401 -- a fixture

SCHEDULE = Path(__file__).parents[2] / "schedc" / "published" / "schedules" / "kimi-k3.yaml"


@pytest.fixture
def short_file(tmp_path: Path) -> Path:
    """A published schedule of a user's own: five layers."""
    text = SCHEDULE.read_text().replace("repeat: 22", "repeat: 1").replace("{repeat: 2, pattern: [kda]}", "")
    file = tmp_path / "mine.yaml"
    file.write_text(text.replace("- \n", "").replace("{repeat: 2, pattern: [mla]}", "{repeat: 1, pattern: [mla]}"))
    return file


def test_a_file_of_ones_own_is_predicted_and_its_program_written(schedc: Command, short_file: Path) -> None:  # noqa: F811
    said = schedc("published", str(short_file), "--step", "1", "--step", "8v", "--program", "mine.ir", "--json")
    one, eight = said.json()
    assert (one["step"], eight["step"], one["position"]) == ("batch 1", "8 verify rows", 1024)
    assert 0 < one["step_us"] < eight["step_us"]
    program = parse_program((short_file.parent / "mine.ir").read_text())
    assert program.devices == 32 and dict(program.attributes)["step"] == "batch 1"


def test_a_table_has_a_line_a_step_and_a_line_a_phase(schedc: Command, short_file: Path) -> None:  # noqa: F811
    said = schedc("published", str(short_file), "--step", "4", "--clock-mhz", "1600")
    assert "1,600 MHz; context 2048, position 1024" in said.out
    assert [line for line in said.out.splitlines() if line.startswith("batch 4  ")]
    assert [line for line in said.out.splitlines() if line.startswith("top_k  ")]


def test_what_cannot_be_is_refused(schedc: Command, short_file: Path) -> None:  # noqa: F811
    assert "--step 8x: a number of rows, with a v" in refused(schedc("published", "--step", "8x"))
    assert "no published schedule 'kimi'; there are: kimi-k3" in refused(schedc("published", "kimi"))
    assert "cannot hold 8 sequences" in refused(schedc("published", "--step", "8", "--context", "131072"))
    assert "position 4000 is outside of the context" in refused(schedc("published", "--position", "4000"))
    assert "--gains: there are no variants of" in refused(schedc("published", str(short_file), "--gains"))

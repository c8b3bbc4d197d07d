"""Programs that were written by hand are looked at like those of models, at the lines of the user's own file."""

from pathlib import Path

import pytest

from .conftest import Command, refused

EXAMPLES = Path(__file__).parents[2] / "examples"
LOOKS = ("buffers", "transfers", "semaphores", "phases", "collectives", "vmem", "kernel")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.ir"
    path.write_text((EXAMPLES / "double_buffer.ir").read_text(encoding="utf-8"), encoding="utf-8")
    return path


def test_transfers_stand_at_the_lines_of_the_file(schedc: Command, mine: Path):
    text = mine.read_text(encoding="utf-8").split("\n")
    table = schedc("inspect", "transfers", "mine.ir", "--json").json()
    rows = {row["transfer"]: [] for row in table["rows"]}
    for row in table["rows"]:
        assert text[row["line"] - 1].strip().startswith("start ")
        rows[row["transfer"]].append((row["times"], row["bytes"]))
    assert rows == {"tiles -> tile": [(1, 4096), (9, 4096)], "total -> sum": [(1, 4096)]}
    assert "lines are of mine.ir" in table["notes"][0]
    line = next(number for number, of_file in enumerate(text, 1) if "start total" in of_file)
    said = schedc("explain", "transfer", "mine.ir", str(line)).out
    assert said.startswith(f"total -> sum (line {line}, between phases)")
    assert "line 1 of mine.ir is no transfer" in refused(schedc("explain", "transfer", "mine.ir", "1"))


def test_a_program_of_a_model_looks_like_the_model(schedc: Command, tmp_path: Path):
    model = ("smollm2-135m", "--context", "512")
    (tmp_path / "mine.ir").write_text(schedc("inspect", "ir", *model).out, encoding="utf-8")
    for look in ("buffers", "transfers", "vmem"):
        asked = schedc("inspect", look, *model, "--json").json()
        found = schedc("inspect", look, "mine.ir", "--json").json()
        assert found.pop("notes", [])[1:] == asked.pop("notes", [])[1:] and found == asked, look
    assert schedc("explain", "step", "mine.ir").out == schedc("explain", "step", *model).out
    assert schedc("diff", "mine.ir", *model, "--json").json()["figures"] == []


@pytest.mark.parametrize("name", ["double_buffer", "exchange", "layers", "ring", "turns"])
def test_every_example_can_be_looked_at(schedc: Command, tmp_path: Path, name: str):
    file = str(EXAMPLES / f"{name}.ir")
    for look in LOOKS:
        assert schedc("inspect", look, file).code == 0, look
    said = schedc("inspect", "timeline", file, "-o", "page.html", "--json").json()
    assert said["step_us"] > 1.0 and f"schedc: {name}" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert schedc("inspect", "timeline", file, "-o", "trace.json").code == 0
    assert schedc("explain", "step", file, "--json").json()["step_us"] == pytest.approx(said["step_us"], abs=1e-3)


def test_it_is_read_from_stdin_and_shown_beside_another(schedc: Command, mine: Path, tmp_path: Path):
    assert "total -> sum" in schedc("inspect", "transfers", "-", stdin=mine.read_text(encoding="utf-8")).out
    other = str(EXAMPLES / "exchange.ir")
    assert schedc("inspect", "timeline", "mine.ir", "--against", other, "-o", "both.html").code == 0
    assert "double_buffer against exchange" in (tmp_path / "both.html").read_text(encoding="utf-8")
    found = schedc("diff", "mine.ir", other, "--html", "diff.html", "--json").json()
    assert ["devices", "1", "2"] in found["settings"] and "tiles -> tile" in [one["transfer"] for one in found["moved"]]
    assert "a policy makes another order of a model" in refused(
        schedc("inspect", "timeline", "mine.ir", "--against", "ring", "-o", "both.html")
    )


def test_stdin_has_one_program(schedc: Command):
    assert refused(schedc("diff", "-", "-")) == "-: stdin has one program; give the other one as a file"


def test_a_loop_too_long_to_be_simulated_is_proven_and_not_looked_at(schedc: Command, mine: Path):
    text = mine.read_text(encoding="utf-8")
    spun = "  loop a < 1000 {\n    loop b < 1000 {\n      compute zero(out: write total[0 +: 8])\n    }\n  }\n"
    mine.write_text(text.replace("  loop t", f"{spun}  loop t"), encoding="utf-8")
    assert schedc("check", "mine.ir").code == 0
    said = refused(schedc("explain", "step", "mine.ir"))
    assert said.startswith("mine.ir: its loops have about 1,001,010 trips in a step; a step of up to 1,000,000 can be")


def test_it_is_priced_by_the_figures_of_the_chip_that_is_given_or_named(schedc: Command, mine: Path):
    def step(*arguments: str) -> float:
        found: float = schedc("explain", "step", *arguments, "--json").json()["step_us"]
        return found

    assert step("mine.ir") == step("mine.ir", "--target", "tpu7x:2x2x1") < step("mine.ir", "--target", "v5e:2x2")
    named = mine.read_text(encoding="utf-8").replace(
        "program double_buffer {", 'program double_buffer {\n  attribute target = "v5e:2x2"'
    )
    Path("named.ir").write_text(named, encoding="utf-8")
    assert step("named.ir") == step("mine.ir", "--target", "v5e:2x2")
    assert step("named.ir", "--target", "tpu7x:2x2x1") == step("mine.ir"), "what is given goes first, also the default"


def test_what_says_how_a_model_is_scheduled_is_refused(schedc: Command, mine: Path):
    for options in (("--policy", "just_in_time"), ("--rows", "4"), ("--set", "depth=2"), ("--devices", "2")):
        said = refused(schedc("inspect", "phases", "mine.ir", *options))
        assert said == f"mine.ir: is a program; {options[0]} cannot be given for it, only --target"


def test_what_is_not_proven_is_refused_as_by_check(schedc: Command, mine: Path):
    mine.write_text(mine.read_text(encoding="utf-8").replace("    wait arrived[t % 2] rows=8\n", ""), encoding="utf-8")
    looked, checked = schedc("inspect", "timeline", "mine.ir"), schedc("check", "mine.ir")
    assert (looked.code, looked.err) == (1, checked.err) and "mine.ir:" in looked.err
    assert not Path("timeline.html").exists()
    assert "none.ir: cannot be read" in refused(schedc("inspect", "vmem", "none.ir"))


def test_a_computation_without_what_its_cycles_depend_on_is_named(schedc: Command, mine: Path):
    text = mine.read_text(encoding="utf-8").replace(" {rows=8, columns=128, multiplier=1.0}", " {rows=8}")
    mine.write_text(text, encoding="utf-8")
    line = next(number for number, of_file in enumerate(text.split("\n"), 1) if "compute residual_add" in of_file)
    said = refused(schedc("inspect", "phases", "mine.ir"))
    assert said.startswith(f"mine.ir:{line}:5: its cycles cannot be told without the attribute 'columns': compute")


def test_a_computation_that_is_not_known_has_no_kernel_but_a_timeline(schedc: Command, mine: Path, tmp_path: Path):
    mine.write_text(mine.read_text(encoding="utf-8").replace("residual_add", "conjure"), encoding="utf-8")
    rows = schedc("inspect", "transfers", "mine.ir", "--json").json()["rows"]
    assert {row["kernel"] for row in rows} == {None}
    assert schedc("inspect", "timeline", "mine.ir", "-o", "page.html").code == 0
    assert "no kernel can be emitted" in refused(schedc("inspect", "kernel", "mine.ir"))
    assert "conjure: no cycles are known, counted as 0" in schedc("explain", "step", "mine.ir").out

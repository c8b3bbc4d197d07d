"""`schedc inspect vmem` and `schedc inspect timeline`: files, JSON, refusals."""

import json
from pathlib import Path

import pytest

from schedc.compiler.output import read_output
from schedc.cost.machine import Machine
from schedc.cost.profile import profile_of
from schedc.cost.simulate import simulate
from schedc.inspect.page_data import schedule_data
from schedc.inspect.seen import seen
from schedc.inspect.subject import of_folder
from schedc.ir.program import ROW_BYTES, Start, walk
from tests.cli.conftest import Command, refused


@pytest.fixture
def folder(schedc: Command, tmp_path: Path) -> Path:
    assert schedc("compile", "smollm2-135m", "--no-check", "-o", "out").code == 0
    return tmp_path / "out"


def test_the_map_of_a_folder_has_what_the_compiler_takes_as_its_report_says(schedc: Command, folder: Path) -> None:
    report = folder / "report.json"
    data = json.loads(report.read_text())
    data["compiler"] = {"vmem_bytes": {"scratch": 1, "internal": 73_728, "spill": 315_392, "other": 0}}
    report.write_text(json.dumps(data))
    found = schedc("inspect", "vmem", "out", "--json").json()
    assert found["compiler_bytes"] == {"internal": 73_728, "spill": 315_392}
    pools = sum(pool["rows"] for pool in found["pools"].values()) * ROW_BYTES
    assert found["slack_bytes"] == found["limit_bytes"] - pools - 73_728 - 315_392
    assert "compiler  spill 0.30 MiB" in schedc("inspect", "vmem", "out").out
    report.write_text('{"compiler": {"vmem_bytes": 3}}')
    assert "is not a report of schedc" in refused(schedc("inspect", "vmem", "out"))


def test_lines_of_the_kernel_are_said_only_of_the_kernel_that_is_emitted(folder: Path) -> None:
    found = seen(of_folder(read_output(folder)))
    lines = found.sources.kernel.split("\n")
    starts = [n for n, op in enumerate(found.history.ops) if isinstance(op, Start)]
    assert all("copy(" in lines[(found.sources.kernel_lines[n] or 0) - 1] for n in starts)
    ir = found.sources.ir.split("\n")
    assert all(ir[found.sources.ir_lines[n] - 1].strip().startswith("start ") for n in starts)
    kernel = folder / "kernel.py"
    kernel.write_text(kernel.read_text() + "# mine\n")
    changed = seen(of_folder(read_output(folder))).sources
    assert changed.kernel == "" and set(changed.kernel_lines) == {None}


def test_a_schedule_that_does_not_fit_is_shown_with_what_clashes(schedc: Command, tmp_path: Path) -> None:
    asked = ("inspect", "vmem", "smollm2-135m", "--set", "depth=40")
    said = schedc(*asked, "--json", "-o", "clash.png")
    assert said.code == 1 and "does not fit the VMEM" in said.err
    assert said.json()["clash"] == ["weights_slot"] and said.json()["slack_bytes"] < 0
    assert (tmp_path / "clash.png").read_bytes().startswith(b"\x89PNG")


def test_the_map_as_a_picture(schedc: Command, tmp_path: Path) -> None:
    asked = ("inspect", "vmem", "smollm2-135m", "--from", "10", "--to", "40", "-o")
    assert schedc(*asked, "map.svg").code == 0
    assert "<svg" in (tmp_path / "map.svg").read_text()
    assert "is written as .svg, .png, .pdf" in refused(schedc(*asked, "map.jpeg"))
    assert "--from less than --to" in refused(schedc(*asked[:-1], "--to", "5", "-o", "map.png"))


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.pftrace", "page.html", "picture.svg"])
def test_what_a_timeline_is_written_as_is_told_by_the_suffix(schedc: Command, tmp_path: Path, name: str) -> None:
    said = schedc("inspect", "timeline", "smollm2-135m", "-o", name, "--json")
    assert said.code == 0, said.err
    assert said.json()["output"] == name and said.json()["step_us"] > 100
    data = (tmp_path / name).read_bytes()
    assert data.startswith({".json": b"{", ".gz": b"\x1f\x8b", ".html": b"<!doctype html>", ".svg": b"<?xml"}.get(
        Path(name).suffix, b"\n"
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("command", "suffixes"),
    [
        ("inspect vmem nothing -o", ".svg, .png, .pdf"),
        ("inspect timeline nothing -o", ".html, .json, .json.gz, .pftrace, .svg, .png, .pdf"),
        ("inspect kernel nothing --html", ".html"),
        ("diff nothing nothing --html", ".html"),
        ("explore nothing --plot", ".svg, .png, .pdf"),
        ("profile nothing -o", ".json, .yaml"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_refused_before_any_work(schedc: Command, command: str, suffixes: str) -> None:
    said = refused(schedc(*command.split(), "out.jpeg"))
    assert said.startswith("out.jpeg: ") and said.endswith(f" {suffixes}")
    last = suffixes.split(", ")[-1]
    assert "there is no folder" in refused(schedc(*command.split(), f"no/where/a{last}"))
    assert "nothing" in refused(schedc(*command.split(), f"a{last}")), "then comes the model"


def test_timelines_that_cannot_be_are_refused(schedc: Command) -> None:
    asked = ("inspect", "timeline", "smollm2-135m")
    assert "told by its suffix: .html, .json" in refused(schedc(*asked, "-o", "x.txt"))
    assert "-o NAME.html" in refused(schedc(*asked, "-o", "x.json", "--against", "just_in_time"))
    assert "a trace has the whole step" in refused(schedc(*asked, "-o", "x.json", "--from", "3"))
    assert "no folder, no model and no policy" in refused(schedc(*asked, "-o", "x.html", "--against", "nothing"))
    assert "cannot be written" in refused(schedc(*asked, "-o", "no/where/x.html"))


def test_a_folder_is_shown_against_another_policy_of_the_model(schedc: Command, folder: Path, tmp_path: Path) -> None:
    said = schedc("inspect", "timeline", "smollm2-135m", "--against", "out", "-o", "both.html")
    assert said.code == 0, said.err
    text = (tmp_path / "both.html").read_text()
    assert "smollm2-135m, rows 1, context 4096, policy ring against smollm2-135m" in text
    assert schedc("inspect", "timeline", "out", "--against", "just_in_time", "-o", "both.html").code == 0
    text = (tmp_path / "both.html").read_text()
    assert "policy ring against smollm2-135m, rows 1, context 4096, policy just_in_time" in text


def test_the_page_of_a_folder_has_what_the_compiler_takes(folder: Path) -> None:
    report = folder / "report.json"
    data = json.loads(report.read_text()) | {"compiler": {"vmem_bytes": {"scratch": 9, "spill": 315_392}}}
    report.write_text(json.dumps(data))
    vmem = schedule_data(seen(of_folder(read_output(folder))))["vmem"]
    assert vmem["compiler"] == (("spill", 315_392),) and vmem["compilerRows"] == 616


def test_a_step_takes_the_cycles_of_the_folders_profile_unless_what_it_is_against_has_none(
    schedc: Command, folder: Path
) -> None:
    found = of_folder(read_output(folder))
    program, chip = found.program, found.target.chip.compiler_name
    slow = profile_of(program, chip, {"jax": "0", "libtpu": "0"}, [500.0] * sum(1 for _ in walk(program.body)), "")
    slow.write(folder / "profile.json")
    by_profile = simulate(program, Machine.of(found.target, slow)).step_ns / 1e3
    by_table = simulate(program, found.machine).step_ns / 1e3
    assert by_profile > 1.2 * by_table
    timeline = ("inspect", "timeline", "out", "-o", "page.html", "--json")
    assert schedc(*timeline).json()["step_us"] == by_profile
    assert schedc(*timeline, "--against", "smollm2-135m").json()["step_us"] == by_table
    assert schedc("inspect", "vmem", "out", "--json").json()["step_us"] == by_profile
    slower = schedc(*timeline, "--profile", "out/profile.json", "--clock-mhz", "950").json()["step_us"]
    assert slower > 1.5 * by_profile


DOCS = Path(__file__).parents[2] / "docs" / "timeline.md"
COMMANDS = [line.split("#")[0].strip() for line in DOCS.read_text().split("\n") if line.startswith("schedc ")]


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.slow if "kimi" in c else ()) for c in COMMANDS]
)  # fmt: skip
def test_every_command_of_the_page_of_docs_runs(schedc: Command, command: str) -> None:
    if " out/" in command:
        assert schedc("compile", "smollm2-135m", "--no-check").code == 0
    said = schedc(*command.split()[1:])
    assert (said.code, said.err) == (0, "") and said.out


@pytest.mark.parametrize(
    "window", [("--from", "30", "--to", "20"), ("--from", "-5"), ("--from", "5000", "--to", "6000"), ("--to", "nan")]
)
def test_a_window_that_is_no_part_of_the_step_is_refused(
    schedc: Command, tmp_path: Path, window: tuple[str, ...]
) -> None:
    for asked in (("timeline", "-o", "a.html"), ("timeline", "-o", "a.png"), ("vmem", "-o", "a.svg")):
        said = refused(schedc("inspect", asked[0], "smollm2-135m", *asked[1:], *window))
        assert "must be a part of the step, from 0 to" in said
    assert not list(tmp_path.iterdir()), "nor is anything left"


def test_a_map_as_text_has_no_window(schedc: Command) -> None:
    said = refused(schedc("inspect", "vmem", "smollm2-135m", "--from", "10"))
    assert said == "--from and --to are for a picture: give it with -o NAME.svg"


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
@pytest.mark.parametrize("command", ["vmem", "timeline"])
def test_the_same_picture_is_the_same_bytes(schedc: Command, tmp_path: Path, command: str, suffix: str) -> None:
    for name in ("a", "b"):
        asked = ("inspect", command, "smollm2-135m", "--from", "10", "--to", "14", "-o", f"{name}{suffix}")
        assert schedc(*asked).code == 0
    found = [(tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b")]
    assert found[0] == found[1] and b"CreationDate" not in found[0]


def test_a_file_that_fails_leaves_the_one_that_was_there(
    schedc: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(tracks: object, path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("schedc.inspect.chrome_trace.write_chrome_trace", half)
    (tmp_path / "a.json").write_text("before")
    said = refused(schedc("inspect", "timeline", "smollm2-135m", "-o", "a.json"))
    assert said == "a.json: cannot be written: No space left on device"
    assert (tmp_path / "a.json").read_text() == "before" and len(list(tmp_path.iterdir())) == 1

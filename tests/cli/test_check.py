"""`schedc check`: a program written by hand is proven, or refused at the lines and columns of its own file."""

import re
from pathlib import Path

import pytest

from schedc.ir.text_lex import MOST_NESTED
from schedc.ir.text_parse import parse_program

from .conftest import Command, refused

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = (EXAMPLES / "double_buffer.ir").read_text()

RACE = """\
program race {  # a comment
  pool work
  buffer a in work rows=8
  hbm w rows=8 weight
  semaphore s dma

  start w[0 +: 8] -> a[0 +: 8] signals s
\tphase use { compute use(x: read a[0 +: 8]) }
  wait s
    rows=8
}
"""


@pytest.fixture
def example() -> Path:
    Path("double_buffer.ir").write_text(EXAMPLE)
    return Path("double_buffer.ir")


def written(text: str, name: str = "p.ir") -> str:
    Path(name).write_text(text)
    return name


def around(line: str, declarations: str = "") -> str:
    """A program file with one operation, on line 6."""
    return written(f"program p {{\n  pool work\n  buffer a in work rows=8\n  {declarations}\n\n  {line}\n}}\n")


def test_a_proven_program_shows_its_memory_and_what_was_proven(schedc: Command, example: Path) -> None:
    said = schedc("check", "double_buffer.ir")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == ("double_buffer.ir: proven safe on tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 1 device used")
    assert lines[2].split()[:5] == ["VMEM", "12.0", "KiB", "of", "63.94"]
    assert [line.split()[:4] for line in lines[5:7]] == [["work", "12.0", "KiB", "0"], ["16", "total", "1", "8"]]
    assert lines[8].startswith("proof       proven safe: 44 operations, 12 transfers, at most 2 in flight (8.0 KiB), ")
    assert re.sub(" +", " ", " ".join(lines[9:])) == "SMEM 0 of 1,046,528 bytes semaphores 3 of 3831"


def test_json_of_a_proven_program(schedc: Command, example: Path) -> None:
    found = schedc("check", "double_buffer.ir", "--json", "-o", "a.ir").json()
    assert found["proven"] is True and found["refusals"] == [] and found["output"] == "a.ir"
    assert (found["program"], found["devices"]) == ("double_buffer", 1)
    assert found["proof"] == {
        "operations": 44, "transfers": 12, "peak_transfers": 2, "peak_rows": 16, "peak_bytes": 8192,
        "skipped_iterations": 0,
    }  # fmt: skip
    assert found["vmem"] == {"peak_bytes": 12288, "limit_bytes": 67043328, "pools": {"work": 12288}}
    assert (found["smem"]["bytes"], found["semaphores"]["count"]) == (0, 3)
    assert found["buffers"] == {"tile": {"pool": "work", "address": 0}, "total": {"pool": "work", "address": 16}}


def test_the_allocated_program_is_written_and_is_proven_as_it_stands(schedc: Command, example: Path) -> None:
    assert schedc("check", "double_buffer.ir", "-o", "a.ir").out.endswith("\nwrote a.ir\n")
    text = Path("a.ir").read_text()
    assert [buffer.address for buffer in parse_program(text).buffers] == [0, 16]
    assert dict(parse_program(text).attributes) == {"vmem_limit_bytes": 67043328}
    assert schedc("check", "a.ir", "-o", "b.ir").code == 0
    assert Path("b.ir").read_text() == text
    assert sorted(path.name for path in Path().iterdir()) == ["a.ir", "b.ir", "double_buffer.ir"]


def test_given_addresses_and_pool_rows_are_kept(schedc: Command) -> None:
    text = EXAMPLE.replace("pool work ", "pool work rows=64 ").replace(
        "total in work rows=8", "total in work rows=8 at 0"
    )
    assert schedc("check", written(text), "-o", "a.ir").code == 0
    program = parse_program(Path("a.ir").read_text())
    assert {buffer.name: buffer.address for buffer in program.buffers} == {"tile": 8, "total": 0}
    assert program.pools[0].rows == 64


def test_a_program_comes_from_stdin(schedc: Command) -> None:
    assert schedc("check", "-", stdin=EXAMPLE).out.startswith("<stdin>: proven safe on tpu7x:2x2x1: ")
    assert refused(schedc("check", "-", stdin="program {")) == (
        "<stdin>:1:9: expected the program's name, found `{`\n     1 | program {\n       |         ^"
    )


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.ir")))
def test_every_example_is_proven(schedc: Command, example: str) -> None:
    assert schedc("check", str(EXAMPLES / example)).code == 0


def test_the_compiled_program_of_a_model_is_proven_alike(schedc: Command) -> None:
    compiled = schedc("compile", "smollm2-135m", "--no-check", "--context", "64", "--json", "-o", "k").json()
    found = schedc("check", "k/program.ir", "--json").json()
    for number in ("operations", "transfers", "peak_transfers", "skipped_iterations"):
        assert found["proof"][number] == compiled["proof"][number]
    assert found["vmem"] == compiled["vmem"]


def test_a_race_is_refused_at_the_lines_and_columns_of_the_file(schedc: Command) -> None:
    assert refused(schedc("check", written(RACE, "race.ir"), "-o", "a.ir"), code=1) == (
        "race.ir is refused: 1 reason\n"
        "\n"
        "race.ir:8:14: read-while-arriving: `compute use(x: read a[0 +: 8])` (line 8) reads rows 0..7 (bytes 0..4095) "
        "of a while the transfer of `start w[0 +: 8] -> a[0 +: 8] signals s` (line 7) may still be writing them\n"
        "     8 | \tphase use { compute use(x: read a[0 +: 8]) }\n"
        "       | \t            ^\n"
        "     7 |   start w[0 +: 8] -> a[0 +: 8] signals s\n"
        "       |   ^ the other operation\n"
        "  repair: wait for 8 rows of s[0] before line 8".replace("s[0]", "s")
    )
    assert not Path("a.ir").exists()


def test_json_of_a_refused_program_has_every_refusal_with_its_place(schedc: Command) -> None:
    said = schedc("check", written(RACE, "race.ir"), "--json")
    assert said.code == 1 and said.err.startswith("error: race.ir is refused: 1 reason\n")
    found = said.json()
    assert found["proven"] is False
    (refusal,) = found["refusals"]
    assert {key: refusal[key] for key in ("rule", "line", "column", "other_line", "other_column", "storage")} == {
        "rule": "read-while-arriving", "line": 8, "column": 14, "other_line": 7, "other_column": 3, "storage": "a",
    }  # fmt: skip
    assert refusal["text"] == f"{refusal['rule']}: {refusal['what']}. Repair: {refusal['repair']}."
    assert found["error"]["kind"] == "not-proven"
    assert found["error"]["problems"] == [refusal["text"]]
    assert found["error"]["message"] == said.err.removeprefix("error: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("line", "declarations", "message"),
    [
        (
            "wait t rows=8",
            "",
            "p.ir:6:3: undeclared: `wait t rows=8` (line 6) uses semaphore t, which is not declared\n"
            "     6 |   wait t rows=8\n       |   ^\n  repair: declare semaphore t[1] dma",
        ),
        (
            "compute zero(out: write a[0 +: 8])",
            "buffer b in wrok rows=8",
            "p.ir:4:3: undeclared: buffer b is in pool wrok, which is not declared\n"
            "     4 |   buffer b in wrok rows=8\n       |   ^\n  repair: declare pool wrok",
        ),
        (
            "compute zero(out: write a[0 +: 8])",
            "buffer b in work rows=8 at 4",
            "p.ir:4:3: address: buffer b at row 4 of pool work is not at a multiple of its alignment\n"
            "     4 |   buffer b in work rows=8 at 4\n       |   ^\n"
            "  repair: leave out the address of b, or give all buffers one",
        ),
    ],
)
def test_bad_declarations_are_refused_where_they_stand(
    schedc: Command, line: str, declarations: str, message: str
) -> None:
    assert refused(schedc("check", around(line, declarations)), code=1) == f"p.ir is refused: 1 reason\n\n{message}"


def test_addresses_that_clash_while_others_are_open_are_refused(schedc: Command) -> None:
    text = EXAMPLE.replace("slots=2", "slots=2 at 0").replace("total in work rows=8", "total in work rows=8 at 8")
    text = text.replace("  hbm tiles", "  buffer free in work rows=8\n  hbm tiles")
    assert (
        "p.ir:9:3: address: buffer tile at row 0 of pool work shares rows with another buffer that is live at the "
        "same time: total\n" in refused(schedc("check", written(text)), code=1)
    )


def test_a_pool_with_too_few_rows_is_refused_with_the_rows_it_needs(schedc: Command) -> None:
    text = EXAMPLE.replace("pool work ", "pool work rows=16 ")
    message = refused(schedc("check", written(text)), code=1)
    assert "p.ir:8:3: capacity: pool work has 16 rows, its buffers need 24\n" in message
    assert message.endswith("\n  repair: give it rows=24, or leave its rows out")


def test_what_does_not_fit_the_chip_names_the_buffers_and_the_bytes(schedc: Command) -> None:
    text = EXAMPLE.replace("tile in work rows=8", "tile in work rows=100000")
    message = refused(schedc("check", written(text)), code=1)
    assert re.search(
        r"p.ir:9:3: capacity: \d+ bytes too many for the \d+ bytes of the pools: .*tile \(102400000\)", message
    )


def test_the_target_is_the_given_one_else_the_programs_own(schedc: Command) -> None:
    own = written(EXAMPLE.replace("  pool work", '  attribute target = "v6e:2x2"\n  pool work', 1))
    assert schedc("check", own, "--json").json()["target"].startswith("v6e:2x2: ")
    assert schedc("check", own, "--target", "v5p", "--json").json()["target"].startswith("v5p:2x2x1: ")
    unknown = written(EXAMPLE.replace("  pool work", '  attribute target = "mine:2x2"\n  pool work', 1))
    assert refused(schedc("check", unknown)) == (
        "p.ir: attribute target: unknown target 'mine'; known: tpu7x, v5e, v5p, v6e; "
        "a chip of your own is given as a file, ./mine.yaml; or give a target with --target"
    )


def test_a_program_for_more_devices_than_there_are_is_refused(schedc: Command) -> None:
    many = written(EXAMPLE.replace("  pool work", "  devices 9\n  pool work", 1))
    assert refused(schedc("check", many)) == "tpu7x:2x2x1 has 8 devices (4 chips of 2); 9 cannot be used"


def test_a_syntax_error_shows_the_line_and_a_caret(schedc: Command) -> None:
    text = EXAMPLE.replace("    wait arrived[t % 2] rows=8", "\twait arrived[t % 2]")
    message = "p.ir:22:21: expected `rows`, found the end of the line"
    shown = f"{message}\n    22 | \twait arrived[t % 2]\n       | \t                   ^"
    assert refused(schedc("check", written(text))) == shown
    said = schedc("check", "p.ir", "--json")
    assert (said.code, said.json()) == (2, {
        "line": 22, "column": 21, "expected": "`rows`", "found": "the end of the line",
        "error": {"kind": "syntax", "message": shown, "problems": [message]},
    })  # fmt: skip


def test_of_a_long_line_what_is_around_the_fault_is_shown(schedc: Command) -> None:
    Path("long.ir").write_text("program p {" + " " * 5000 + "\0" + "x" * 5000)
    first, line, caret = refused(schedc("check", "long.ir")).splitlines()
    assert first.startswith("long.ir:1:5012: expected ") and max(len(line), len(caret)) < 220
    assert line[caret.index("^")] == "\ufffd"


def test_what_is_no_text_or_not_there_is_refused(schedc: Command) -> None:
    Path("b.ir").write_bytes(b"program \xff")
    Path("folder").mkdir()
    assert refused(schedc("check", "b.ir")) == "b.ir: is not text: byte 8 is not UTF-8"
    assert refused(schedc("check", "none.ir")) == "none.ir: cannot be read: No such file or directory"
    assert refused(schedc("check", "folder")) == "folder: cannot be read: Is a directory"
    written(EXAMPLE)
    assert refused(schedc("check", "p.ir", "-o", "none/a.ir")) == (
        "none/a.ir: cannot be written: No such file or directory"
    )


def test_blocks_as_deep_as_may_be_are_proven(schedc: Command) -> None:
    blocks = [f"loop l{i} < 1 {{" for i in range(MOST_NESTED // 2)] + ["when x[0] >= 0 {"] * (MOST_NESTED // 2)
    body = "\n".join([*blocks, "set y[0] = 0" + " + x[0]" * 98, *["}"] * MOST_NESTED])
    text = f"program p {{\n  smem x[1] in 0..5 input\n  smem y[1] in 0..1000 local\n{body}\n}}\n"
    assert schedc("check", written(text)).code == 0


def test_an_output_is_a_regular_file(schedc: Command, tmp_path: Path) -> None:
    program = tmp_path / "p.ir"
    program.write_text(EXAMPLE)
    link = tmp_path / "link.ir"
    link.symlink_to(program)
    for arguments in (
        ("emit", str(program), "-o", str(program)),
        ("emit", str(program), "-o", ""),
        ("check", str(program), "-o", ""),
        ("check", str(program), "-o", "-"),
        ("check", str(program), "-o", str(tmp_path)),
        ("check", str(program), "-o", "/dev/null"),
    ):
        message = refused(schedc(*arguments))
        assert ("not a regular file" in message) == (arguments[3] in (str(tmp_path), "/dev/null")), message
        assert program.read_text() == EXAMPLE
    assert Path("/dev/null").is_char_device()
    assert schedc("check", str(program), "-o", str(link)).code == 0
    assert link.is_symlink()
    assert " at " in program.read_text()

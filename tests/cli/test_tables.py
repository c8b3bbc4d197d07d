"""`schedc inspect buffers|transfers|…`: sorted, filtered, as JSON, CSV and text, of a model or of a folder."""

import csv
import io

import pytest

from .conftest import Command, refused

TABLES = ("buffers", "transfers", "semaphores", "phases", "placement", "collectives")
MODEL = ("smollm2-135m",)


@pytest.mark.parametrize("what", TABLES)
def test_a_folder_and_a_model_say_the_same(schedc: Command, what: str):
    schedc("compile", *MODEL, "--no-check", "-o", "k")
    of_folder = schedc("inspect", what, "k", "--columns", "all")
    assert of_folder.code == 0 and of_folder.out == schedc("inspect", what, *MODEL, "--columns", "all").out
    assert schedc("inspect", what, "k", "--csv").out == schedc("inspect", what, *MODEL, "--csv").out


def test_rows_are_sorted_filtered_and_cut(schedc: Command):
    asked = ("--where", "phase~^(qkv|up)$", "--where", "bytes>1e6", "--sort", "bytes", "--columns", "phase,bytes")
    said = schedc("inspect", "transfers", *MODEL, *asked, "--reverse", "--json").json()
    rows = [(row["phase"], row["bytes"]) for row in said["rows"]]
    assert {phase for phase, _ in rows} == {"qkv", "up"}
    assert [size for _, size in rows] == sorted((size for _, size in rows), reverse=True)
    assert said["columns"] == [{"name": "phase", "unit": None}, {"name": "bytes", "unit": "each"}]
    read = list(csv.reader(io.StringIO(schedc("inspect", "transfers", *MODEL, *asked, "--reverse", "--csv").out)))
    assert read[0] == ["phase", "bytes"] and [(phase, int(size)) for phase, size in read[1:]] == rows


def test_a_piped_table_has_a_row_a_line_with_the_whole_reason(schedc: Command):
    said = schedc("inspect", "transfers", *MODEL).out.splitlines()
    rows = schedc("inspect", "transfers", *MODEL, "--json").json()["rows"]
    lines = said[2 : 2 + len(rows)]
    assert all(line.rstrip().endswith(row["reason"]) for line, row in zip(lines, rows, strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sort", "byte"], "transfers has no column 'byte'; did you mean bytes?"),
        (["--where", "bytes"], "--where bytes: must be like phase~attend"),
        (["--columns", "phase,when"], "transfers has no column 'when'"),
        (["--reverse"], "--reverse needs --sort COLUMN"),
        (["--csv", "--json"], "--json and --csv: give one of them"),
    ],
)
def test_what_a_table_does_not_have_is_refused(schedc: Command, options: list[str], message: str):
    said = schedc("inspect", "transfers", *MODEL, *options)
    assert said.code == 2 and message in said.err


def test_placement_keeps_its_report_and_gives_rows_if_asked(schedc: Command):
    whole = schedc("inspect", "placement", *MODEL, "--json").json()
    rows = schedc("inspect", "placement", *MODEL, "--sort", "share", "--reverse", "--json").json()["rows"]
    assert sum(row["device"] or 0 for row in rows) == whole["total"]
    sizes = {name: family["device"] for name, family in whole["families"].items() if "device" in family}
    assert rows[0]["family"] == max(sizes, key=sizes.__getitem__) and rows[0]["device"] == max(sizes.values())


def test_options_cannot_be_given_for_a_folder(schedc: Command):
    schedc("compile", *MODEL, "--no-check", "-o", "k")
    assert "--policy cannot be given" in refused(schedc("inspect", "phases", "k", "--policy", "just_in_time"))

"""`schedc inspect kernel` and `schedc inspect llo`."""

from collections import Counter
from pathlib import Path

import pytest

from schedc.cli.console import print_whole
from schedc.cli.inspect.llo import _phases
from schedc.inspect.llo import Llo, PhaseBundles
from schedc.inspect.units import units_table

from .conftest import Command, refused

COMPILE = ("compile", "smollm2-135m", "--context", "512", "-o", "k")


def test_a_line_of_the_kernel_beside_its_figures(schedc: Command):
    schedc(*COMPILE, "--no-check")
    source = Path("k/kernel.py").read_text().splitlines()
    said = schedc("inspect", "kernel", "k", "--json").json()
    assert all(source[line["number"] - 1] == line["text"] for line in said["lines"])
    printed = schedc("inspect", "kernel", "k").out.splitlines()
    assert printed[0].split() == ["phase", "cycles", "times", "µs", "stall", "µs", "line", "source"]
    assert printed[1].split()[0] == "prologue" and printed[1].endswith("# prologue")
    assert len(printed) == len(said["lines"]) + 2
    whole = schedc("inspect", "kernel", "k", "--all", "--json").json()["lines"]
    assert [line["text"] for line in whole] == source
    of_model = schedc("inspect", "kernel", "smollm2-135m", "--context", "512", "--json").json()
    assert of_model["lines"] == said["lines"]


def test_a_page_has_every_line_and_no_network(schedc: Command):
    assert schedc("inspect", "kernel", "smollm2-135m", "--phase", "qkv", "--html", "k.html").code == 0
    page = Path("k.html").read_text()
    assert "matmul(" in page and "http" not in page and page.startswith("<!DOCTYPE html>")
    assert "no phase 'qvk'" in refused(schedc("inspect", "kernel", "smollm2-135m", "--phase", "qvk"))


def test_llo_wants_a_folder_and_a_phase_for_its_bundles(schedc: Command):
    assert "give a folder" in refused(schedc("inspect", "llo", "smollm2-135m"))
    schedc(*COMPILE, "--no-check")
    assert refused(schedc("inspect", "llo", "k", "--bundles")) == "--bundles prints those of one phase; name it"


@pytest.mark.kernel
def test_llo_takes_a_folder_of_several_rows_and_no_program(schedc: Command):
    schedc(*COMPILE, "--rows", "2", "--no-check")
    Path("k/kernel.py").write_text("")
    assert "kernel.py is not the kernel of program.ir" in refused(schedc("inspect", "llo", "k"))
    assert "bundles are of a kernel that was compiled" in refused(schedc("inspect", "llo", "k/program.ir"))


def test_after_a_check_the_bundles_are_there_at_once(schedc: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from schedc.backends.pallas.aot import compile as aot

    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path / "kept"))
    report = schedc(*COMPILE, "--json").json()
    monkeypatch.setattr(aot, "run_worker", lambda *arguments, **named: pytest.fail("compiled again"))
    phases = schedc("inspect", "llo", "k", "--json").json()["phases"]
    assert sum(phase["bundles"] for phase in phases) == report["compiler"]["issue_cycles"]
    assert {p["phase"]: p["bundles"] for p in phases}["qkv"] == report["compiler"]["phase_cycles"]["qkv"]
    said = schedc("inspect", "llo", "k", "qkv", "--lines", "2").out
    assert "matmul(" in said and "MXU" in said
    listed = schedc("inspect", "llo", "k", "qkv", "--bundles").out.splitlines()
    assert len(listed) == report["compiler"]["phase_cycles"]["qkv"]
    priced = schedc("inspect", "kernel", "k", "--json").json()
    assert priced["priced_by"].startswith("the compiler's cycles")
    assert priced["step_us"] == report["cost_by_compiler"]["step_us"]


def test_names_of_phases_are_whole_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]):
    units = units_table()
    phase = PhaseBundles("feed_forward_residual_1_0", bundles=7, operations=Counter(dict.fromkeys(units.names, 1)))
    print_whole(_phases(Llo((phase,), units, "tpu7x", {}), [phase]))
    assert "feed_forward_residual_1_0         7" in capsys.readouterr().out

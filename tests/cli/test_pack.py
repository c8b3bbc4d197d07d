"""`schedc pack`: the layout of the kernel; interrupted, it leaves no half file and goes on later."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedc.compiler.output import read_output
from schedc.weights.fetch import fetch_weights
from schedc.weights.packed_file import load_packed

from .conftest import Command


@pytest.fixture(scope="module")
def weights() -> str:
    return str(fetch_weights("smollm2-135m"))


def test_the_file_has_the_layout_of_the_folder(schedc: Command, weights: str) -> None:
    schedc("compile", "smollm2-135m", "--no-check", "-o", "k")
    result = schedc("pack", "k", "--weights-file", weights, "-o", "w", "--json").json()
    layouts = read_output(Path("k")).layouts
    assert load_packed(Path("w"), layouts).keys() == {layout.name for layout in layouts}
    (file,) = result["files"]
    assert (file["device"], file["file"], file["bytes"]) == (0, "w", Path("w").stat().st_size)
    assert schedc("pack", "smollm2-135m", "-o", "v").code == 0
    assert Path("v").read_bytes() == Path("w").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_leaves_no_half_file_and_the_next_run_goes_on(tmp_path: Path, weights: str) -> None:
    command = [sys.executable, "-m", "schedc.cli.main", "pack", "smollm2-135m", "--weights-file", weights, "-o", "w"]
    journal = tmp_path / "w.journal"
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # A shell's background job ignores it.
    )
    while process.poll() is None and not (journal.exists() and journal.read_text().count("\n") > 2):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.journal", "w.part"]
    done = journal.read_text().splitlines()
    assert len(done) > 2

    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
    load_packed(tmp_path / "w")


def test_weights_are_rounded_to_a_quantised_format_only_where_it_is_asked_for(schedc: Command, weights: str) -> None:
    quantised = ("pack", "smollm2-135m", "--weights", "int8", "--weights-file", weights, "-o", "w")
    refused = schedc(*quantised)
    assert refused.code == 2
    assert "layers.0.attn.q: the weights are floating-point numbers, the kernel wants int8; pack them" in refused.err
    assert schedc(*quantised, "--round", "nearest").code == 0
    bf16 = schedc("pack", "smollm2-135m", "--weights-file", weights, "-o", "v")
    assert bf16.code == 0
    assert Path("w").stat().st_size < 0.75 * Path("v").stat().st_size  # the embedding and the head stay bf16

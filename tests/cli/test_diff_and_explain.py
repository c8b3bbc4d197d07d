"""`schedc diff` and `schedc explain`."""

import base64
import gzip
import json
from pathlib import Path

import pytest

from .conftest import Command, refused

MODEL = ("smollm2-135m", "--context", "512")


def test_diff_of_two_folders_and_of_models_says_the_same(schedc: Command):
    schedc("compile", *MODEL, "--no-check", "-o", "a")
    schedc("compile", *MODEL, "--no-check", "--policy", "just_in_time", "-o", "b")
    folders = schedc("diff", "a", "b", "--json")
    models = schedc("diff", MODEL[0], *MODEL, "--b", "--policy just_in_time", "--json")
    assert folders.code == models.code == 0 and folders.json() == models.json()
    step = next(figure for figure in folders.json()["figures"] if figure["name"] == "step")
    assert step["second"] > step["first"] and step["change"] == pytest.approx(step["second"] - step["first"], abs=1e-3)
    said = schedc("diff", "a", "b").out
    assert "policy: ring -> just_in_time" in said and "transfers issued elsewhere" in said and "qkv ×30" in said
    assert "(--all)" in said and "(--all)" not in schedc("diff", "a", "b", "--all").out


def test_diff_writes_the_page_of_both(schedc: Command, tmp_path: Path):
    said = schedc("diff", MODEL[0], *MODEL, "--b", "--policy just_in_time", "--html", "both.html")
    assert said.code == 0 and said.out.endswith("\nwrote both.html\n") and "transfers issued elsewhere" in said.out
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "policy ring against smollm2-135m, rows 1, context 512, policy just_in_time" in text
    packed = text.split('id="data" type="application/octet-stream">')[1].split("<")[0]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    found = schedc("diff", MODEL[0], *MODEL, "--b", "--policy just_in_time", "--json").json()
    assert [entry[0] for entry in data["differs"]["moved"]] == [one["transfer"] for one in found["moved"]]
    step = next(one["first"] for one in found["figures"] if one["name"] == "step")
    assert data["schedules"][0]["step"] == pytest.approx(1e3 * step, abs=1), "both are priced alike"
    told = schedc("diff", MODEL[0], *MODEL, "--html", "same.html", "--json").json()
    assert told["html"] == "same.html" and told["same_program"]


@pytest.mark.parametrize("name", ["both.png", "both", ".html", "no/where/both.html"])
def test_a_page_that_cannot_be_is_refused_before_anything_is_compiled(schedc: Command, name: str):
    said = refused(schedc("diff", "no-such-model", "nor-this", "--html", name))
    assert said.startswith(f"{name}: ") and "no-such-model" not in said


def test_diff_of_the_same_is_said_and_is_no_failure(schedc: Command):
    said = schedc("diff", MODEL[0], *MODEL)
    assert (said.code, said.out) == (0, "the same program\nno figure of the prediction differs\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--b", "--poly x"), "--b '--poly x': No such option: --poly"),
        (("--a", "--set"), "--a '--set': "),
        (("--a", "x"), "--a 'x': "),
        (("--b", "'"), '--b "\'": '),
        (("--b", "--help"), "--b '--help': No such option: --help"),
    ],
)
def test_bad_options_of_one_side_are_refused(schedc: Command, arguments: tuple[str, ...], message: str):
    assert refused(schedc("diff", MODEL[0], *MODEL, *arguments)).startswith(message)


def test_explain_step_fit_and_transfer(schedc: Command):
    assert "the step takes" in schedc("explain", "step", *MODEL).out
    assert schedc("explain", "step", *MODEL, "--json").json()["binding"] in ("hbm", "compute", "latency", "dependence")
    assert schedc("explain", "fit", *MODEL).out.startswith("it fits: HBM ")
    big = schedc("explain", "fit", "llama-3.1-70b", "--devices", "1", "--json")
    assert big.code == 0 and not big.json()["fits"] and "would fit: --devices 2" in big.json()["refusal"]
    found = schedc("explain", "transfer", MODEL[0], "kv_new", *MODEL[1:], "--json").json()["transfers"]
    assert found[0]["constraint"]["kind"] == "data"
    said = schedc("explain", "transfer", MODEL[0], "kv_new", *MODEL[1:]).out
    assert "it cannot start earlier: it moves what is made by merge_newest of attend" in said
    for name in ("none", "", " "):
        assert f"no transfer is called {name!r}" in refused(schedc("explain", "transfer", MODEL[0], name))


def test_what_is_waited_for_at_times_only_says_how_often(schedc: Command):
    found = schedc("explain", "step", *MODEL, "--json").json()
    rows = schedc("inspect", "transfers", *MODEL, "--json").json()["rows"]
    times = {(row["transfer"], round(row["stall"] or 0.0, 2)): row["times"] for row in rows}
    assert all(times[one["transfer"], round(one["stall_us"], 2)] == one["times"] for one in found["waited"])
    seldom = next(one for one in found["waited"] if one["waits"] < one["times"])
    assert f"({seldom['waits']:,} of {seldom['times']:,} times): {seldom['reason']}" in "\n".join(found["answer"])

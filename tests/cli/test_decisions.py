"""decisions.json and decisions.md of a folder, and `schedc inspect decisions`."""

import json
from pathlib import Path

from .conftest import Command, refused

MODEL = ("smollm2-135m", "--context", "512")


def test_a_folder_has_the_log_that_is_inspected(schedc: Command):
    schedc("compile", *MODEL, "--no-check", "-o", "k")
    written = json.loads(Path("k/decisions.json").read_text())
    assert written == schedc("inspect", "decisions", "k", "--json").json()
    assert written == schedc("inspect", "decisions", *MODEL, "--json").json()
    text = Path("k/decisions.md").read_text()
    assert text.startswith("# Decisions of smollm2_135m_decode") and all(one["about"] in text for one in written)
    before = text, Path("k/decisions.json").read_bytes()
    schedc("compile", *MODEL, "--no-check", "-o", "k")
    assert (Path("k/decisions.md").read_text(), Path("k/decisions.json").read_bytes()) == before


def test_one_kind_and_its_alternatives(schedc: Command):
    said = schedc("inspect", "decisions", *MODEL, "--kind", "kv tile").out
    assert said.startswith("kv tile: tile of the cache: 512 tokens (") and "256 tokens" in said
    message = refused(schedc("inspect", "decisions", *MODEL, "--kind", "colour"))
    assert message.startswith("--kind colour: the kinds are devices, ")


def test_predictions_say_what_they_are_priced_by_and_bytes_what_they_count(schedc: Command):
    log = schedc("inspect", "decisions", *MODEL, "--predict", "--json").json()
    policy = next(one for one in log if one["kind"] == "policy")
    assert policy["why"].endswith("; all steps are priced by the table of operations") and policy["cost"] > 0
    assert {other["cost"] is None for other in policy["alternatives"]} == {False}
    plain = schedc("inspect", "decisions", *MODEL, "--json").json()
    assert "priced" not in next(one for one in plain if one["kind"] == "policy")["why"]
    two = schedc("inspect", "decisions", *MODEL, "--devices", "2", "--json").json()
    counted = [one["why"] for one in two if one["unit"] == "bytes a device"]
    assert len(counted) > 2 and all(why.endswith("without padding, outputs are not in") for why in counted)

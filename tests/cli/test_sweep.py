"""`schedc sweep`: every combination in order, refused ones with their reason, in three forms."""

import csv
import io

import pytest

from .conftest import Command

ASKED = ("smollm2-135m", "--context", "256,512")


def test_every_combination_is_a_point_and_batches_cost_less_a_token(schedc: Command) -> None:
    said = schedc("sweep", *ASKED, "--batch", "1,4", "--price", "2.5", "--json")
    assert said.code == 0, said.err
    points = said.json()["points"]
    assert [(p["context"], p["batch"]) for p in points] == [(256, 1), (256, 4), (512, 1), (512, 4)]
    one, four = points[:2]
    assert one["step_us"] == pytest.approx(one["kernel_us"] + 50)
    assert one["tokens_per_s"] == pytest.approx(1e6 / one["step_us"], rel=1e-4)
    assert four["dollars_per_million_tokens"] < one["dollars_per_million_tokens"]
    assert one["dollars_per_million_tokens"] == pytest.approx(2.5 / 3600 / one["tokens_per_s"] * 1e6, abs=1e-4)
    assert (one["position"], one["chips"], one["devices"]) == (128, 1, 1)
    assert points[2]["kernel_us"] > one["kernel_us"]
    assert one["first_token_estimate_us"] > one["prefill_estimate_us"] > 0


def test_what_cannot_be_is_a_row_that_says_why(schedc: Command) -> None:
    said = schedc("sweep", "smollm2-135m", "--batch", "1,40", "--context", "256", "--csv")
    assert said.code == 0, said.err
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [bool(row["refused"]) for row in rows] == [False, True]
    assert "40" in rows[1]["refused"]
    assert (rows[1]["step_us"], rows[0]["refused"]) == ("", "")
    table = schedc("sweep", "smollm2-135m", "--batch", "1,40", "--context", "256").out
    assert "batch 40, context 256, accept 1: " in table
    assert "an estimate from a roofline" in table


def test_topologies_and_a_faster_clock(schedc: Command) -> None:
    asked = ("sweep", "smollm2-135m", "--topology", "2x2x1,2x2x2", "--context", "256", "--json")
    points = schedc(*asked).json()["points"]
    assert [point["target"] for point in points] == ["tpu7x:2x2x1", "tpu7x:2x2x2"]
    fast = schedc(*asked, "--clock-mhz", "2200").json()["points"]
    assert fast[0]["kernel_us"] < points[0]["kernel_us"]


def test_an_accepted_draft_gives_more_tokens_a_step_and_takes_its_time(schedc: Command) -> None:
    asked = ("sweep", "smollm2-135m", "--context", "256", "--batch", "4", "--rows-are", "tokens")
    points = schedc(*asked, "--accept", "1,2.5,5", "--draft-us", "30", "--json").json()["points"]
    assert points[1]["step_us"] == pytest.approx(points[0]["step_us"] + 30)
    assert points[1]["tokens_per_s"] == pytest.approx(2.5e6 / points[1]["step_us"], rel=1e-4)
    assert points[2]["refused"] == "--accept 5: a step that verifies 4 tokens gives at most 4; raise --batch"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--batch", "1,x"), 2, "--batch 1,x: must be numbers over 0"),
        (("--json", "--csv"), 2, "give one of them"),
        (("--accept", "2"), 1, "a step of sequences gives each one token; give --rows-are tokens"),
        (("--routing", "zipf"), 2, "is neither uniform nor like zipf:1.1"),
    ],
)
def test_what_is_wrong_is_said(schedc: Command, arguments: tuple[str, ...], code: int, message: str) -> None:
    said = schedc("sweep", "smollm2-135m", "--context", "256", *arguments)
    assert said.code == code
    assert message in said.err

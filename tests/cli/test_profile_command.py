"""`schedc profile`, and predictions charged with what it writes."""

import pytest

from .conftest import Command


@pytest.mark.kernel
def test_a_profile_of_a_schedule_prices_it_and_another_order_of_it(schedc: Command) -> None:
    asked = ("smollm2-135m", "--context", "256", "--set", "depth=4")
    made = schedc("profile", *asked, "-o", "p.json", "--json")
    assert made.code == 0, made.err
    found = made.json()
    kinds = {kind["name"]: kind for kind in found["kinds"]}
    assert kinds["matmul"]["times"] == 150
    assert 0.8 < kinds["attend"]["table_over_profile"] < 1.25
    compiled = schedc("compile", *asked, "--profile", "p.json", "--no-check", "--json", "-o", "k")
    assert compiled.code == 0, compiled.err
    cost = compiled.json()["cost"]
    assert cost["step_us"] == found["step_us"]["by_profile"] != found["step_us"]["by_table"]
    assert cost["priced_by"].endswith(")")
    deeper = schedc("compile", *asked[:3], "--set", "depth=3", "--profile", "p.json", "--no-check", "--json", "-o", "l")
    assert deeper.json()["cost"]["priced_by"].endswith(", by signature")
    assert deeper.json()["cost"]["notes"] == []


def test_a_profile_that_is_none_is_refused_before_anything_is_made(schedc: Command) -> None:
    said = schedc("compile", "smollm2-135m", "--profile", "nothing", "--no-check")
    assert said.code == 2
    assert "nothing: is no file, and no table of cycles of that name is shipped" in said.err

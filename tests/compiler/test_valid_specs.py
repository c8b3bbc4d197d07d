"""Valid specs are proven, whatever their windows, runs and rows."""

import pytest

from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.reference.small_specs import two_runs


@pytest.mark.parametrize("rows", [1, 4, 8])
def test_a_window_smaller_than_a_tile_is_proven(rows: int) -> None:
    spec = load_spec("smollm2-135m").model_dump(mode="json")
    spec["layers"][0]["pattern"][0]["mixer"]["window"] = 5
    request = Request(ModelSpec.model_validate(spec), parse_target("tpu7x"), StepShape(rows, 4096))
    assert compile_model(request).verdict.proven


def test_two_runs_attend_in_groups() -> None:
    request = Request(two_runs(), parse_target("tpu7x"), StepShape(16, 64))
    assert compile_model(request).verdict.proven


@pytest.mark.parametrize("name", ["../evil", "a\nb", ""])
def test_a_name_that_is_not_a_folder_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        ModelSpec.model_validate(two_runs().model_dump(mode="json") | {"name": name})

"""A format is for a family of weights that the model has."""

import pytest

from schedc.errors import SpecError
from schedc.spec.load import list_models, load_spec
from schedc.spec.storage import Quantization
from schedc.weights.families import families_of, refuse_unused_formats

DENSE = ("attention", "dense", "head")


@pytest.mark.parametrize(
    ("model", "families"),
    [
        ("smollm2-135m", DENSE),
        ("mixtral-8x22b", ("attention", "experts", "router", "head")),
        ("deepseek-v3", ("attention", "dense", "experts", "shared", "router", "head")),
        ("kimi-k3", ("attention", "decay", "dense", "experts", "shared", "router", "head")),
    ],
)
def test_the_families_of_a_model(model: str, families: tuple[str, ...]) -> None:
    assert families_of(load_spec(model)) == families


def test_a_format_for_weights_that_the_model_lacks_is_refused() -> None:
    spec = load_spec("smollm2-135m")
    spec = spec.model_copy(update={"quantization": Quantization(dense="int8", experts="mxfp4", router="f32")})
    with pytest.raises(SpecError) as error:
        refuse_unused_formats(spec)
    assert str(error.value).splitlines() == [
        "smollm2-135m:",
        "  quantization.experts: the model has none, only attention, dense, head; leave it out",
        "  quantization.router: the model has none, only attention, dense, head; leave it out",
    ]


@pytest.mark.parametrize("model", list_models())
def test_the_specs_that_come_with_schedc_name_families_that_they_have(model: str) -> None:
    refuse_unused_formats(load_spec(model))

"""Paged caches: pages in disorder, with room for more, against the reference; every program is proven."""

from dataclasses import replace

import pytest

from schedc.compiler.pipeline import Request, compile_model, limits_of
from schedc.compiler.trial import problems
from schedc.errors import SpecError
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, built_of, step, trial
from tests.reference.small_specs import FEATURES, latent_spec, small_spec

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=3, context=50, logits=True, pages=17)
"""Each sequence has 4 pages of 16 tokens when it is full."""

SPECS = {"plain": small_spec(), "window": FEATURES["window"], "latent": latent_spec()}


def paged(spec: ModelSpec, dtype: str = "f32", tokens: int = 16) -> ModelSpec:
    kv = {"dtype": dtype, "layout": "paged", "page_tokens": tokens}
    changed = {"quantization": {"weights": dtype}, "kv": kv}
    return ModelSpec.model_validate(spec.model_dump(mode="json") | changed)


def request(spec: ModelSpec, shape: StepShape = SHAPE) -> Request:
    return Request(spec, parse_target("tpu7x"), shape)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=[] if (name, mode) == ("plain", "on_wait") else [pytest.mark.slow])
        for name in SPECS
        for mode in ("eager", "on_wait")
    ],
)
def test_pages_in_any_order_agree_with_the_reference(name: str, mode: Mode) -> None:
    spec = paged(SPECS[name])
    compiled = compile_model(request(spec))
    beside = trial(built_of(compiled.schedule, compiled.program), spec, SHAPE, mode)
    for positions, active in (((0, 47, 20), None), ((17, 32, 9), (True, False, True)), ((18, 33, 10), None)):
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == []
        assert not raced


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_the_proof_rests_on_the_pages_being_distinct(spec: ModelSpec) -> None:
    compiled = compile_model(request(paged(spec)))
    (table,) = (scalars for scalars in compiled.program.scalars if scalars.name == "page")
    assert (table.length, table.low, table.high, table.distinct) == (12, 0, 16, True)
    others = tuple(replace(s, distinct=False) for s in compiled.program.scalars)
    verdict = verify(replace(compiled.program, scalars=others), limits_of(parse_target("tpu7x")))
    assert {refusal.storage for refusal in verdict.refusals} == {"kv"}


def test_a_page_that_is_no_whole_number_of_chunks_is_refused() -> None:
    with pytest.raises(SpecError, match=r"kv.page_tokens: 24 is not a multiple of 16, 8 word rows of bf16; use 32"):
        compile_model(request(paged(small_spec(), "bf16", 24)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_the_tpu_compiler_takes_a_page_table(name: str, tmp_path) -> None:
    from schedc.compiler.check import check

    compiled = compile_model(request(paged(SPECS[name], "bf16")))
    kernel = tmp_path / "kernel.py"
    kernel.write_text(compiled.kernel.source)
    assert check(compiled, kernel).problems == ()

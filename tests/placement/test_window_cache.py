"""Caches of layers with a window: their bytes in HBM, and when a ring is proposed."""

import pytest

from schedc.compiler.pipeline import Request, build
from schedc.compiler.placement import least_bytes
from schedc.errors import CheckFailed, UserError
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.spec.window_cache import with_window_cache
from schedc.target.target import parse_target

GPT_OSS = load_spec("gpt-oss-120b")
"""Every other layer of 36 has a window of 128."""

PAGED = GPT_OSS.model_copy(update={"kv": GPT_OSS.kv.model_copy(update={"layout": "paged", "page_tokens": 128})})


def test_a_long_context_is_kept_by_the_layers_alone_that_see_it() -> None:
    shape = StepShape(8, 131_072, devices=8)
    token = 18 * 8 * 256  # bytes a token of the layers with a window (or of the others), a kv head of 64 in bf16
    whole, ring = (least_bytes(with_window_cache(GPT_OSS, cache), shape) for cache in ("context", "ring"))
    assert whole - ring == token * (131_072 - 128 - 16)  # A ring of the smallest tiles, of 16.


def test_a_ring_is_among_what_would_fit() -> None:
    with pytest.raises(CheckFailed) as refused:
        build(Request(GPT_OSS, parse_target("tpu7x:2x2x1"), StepShape(6, 131_072)))
    said = next(line for line in str(refused.value).splitlines() if "would fit" in line)
    assert said == "  would fit: --window-cache ring"
    assert build(Request(with_window_cache(GPT_OSS, "ring"), parse_target("tpu7x:2x2x1"), StepShape(6, 131_072)))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (load_spec("llama-3.1-8b"), "llama-3.1-8b has no layer with a window or chunks; leave the window cache out"),
        (
            PAGED,
            "gpt-oss-120b:\n  kv.window: ring belongs to the layout contiguous: of pages a table says which; use "
            "window: context",
        ),
    ],
)
def test_a_model_that_has_no_ring_is_refused(spec: ModelSpec, said: str) -> None:
    with pytest.raises(UserError) as error:
        with_window_cache(spec, "ring")
    assert str(error.value) == said

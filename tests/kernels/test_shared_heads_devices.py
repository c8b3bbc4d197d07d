"""Grouped-query attention whose tiles lie on the devices that share a kv head, against the reference on one device.

f32, so that any mistake shows. A single row stands on both sides of every border of tiles, one after the other.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, compile_model, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.verify import verify
from schedc.lower.graph import RowsAre, StepShape
from schedc.placement.rules import PlacementRules
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.kernels.built import Mode, in_format, small_tiles
from tests.kernels.faults import rewritten
from tests.reference.small_specs import RMS, latent_spec, small_spec

pytestmark = pytest.mark.kernel

HEADS, SEQUENCE = PlacementRules(), PlacementRules(kv="sequence")

ONE = {"heads": 8, "kv_heads": 1, "sinks": True, "soft_cap": 3.0, "output_gate": True}
"""One kv head, which all devices share."""
WINDOW = {"heads": 12, "kv_heads": 2, "head_dim": 80, "window": 21}
WIDE = {"heads": 8, "kv_heads": 1, "head_dim": 136, "qk_norm": RMS, "qk_norm_over": "heads"}
TWO = {"heads": 8, "kv_heads": 2}


def two_layers(mixer: dict[str, Any]) -> ModelSpec:
    pattern = small_spec(mixer).model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"]
    return small_spec(layers=[{"repeat": 2, "pattern": pattern}])


def mixed() -> ModelSpec:
    """A layer with one kv head, then two with a window and one with as many kv heads as devices."""
    kinds: list[dict[str, Any]] = [ONE, WINDOW, {"heads": 4, "kv_heads": 4}]
    one, window, own = (
        small_spec(mixer).model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"][0] for mixer in kinds
    )
    return small_spec(layers=[{"repeat": 1, "pattern": [one]}, {"repeat": 2, "pattern": [window, own]}])


def request(
    spec: ModelSpec,
    devices: int,
    rows: int = 2,
    rows_are: RowsAre = "sequences",
    rules: PlacementRules = SEQUENCE,
    context: int = 90,
) -> Request:
    shape = StepShape(rows, context, logits=True, devices=devices, placement=rules, rows_are=rows_are)
    spec = spec.model_copy(update={"max_position": 128})
    return Request(
        spec, parse_target("tpu7x:2x2x1" if devices <= 8 else "tpu7x:2x2x4", devices), shape, small_tiles("ring")
    )


def agrees(asked: Request, mode: Mode) -> None:
    made, program = build(asked)
    verdict = verify(program, limits_of(asked.target))
    assert verdict.proven, str(verdict)
    run = interpret(Shrunk(asked.spec, asked.shape, made, ()), program, mode, 500)
    assert run.problems == ()
    assert 0 < run.logits < run.logits_limit and 0 < run.cache < run.cache_limit


@pytest.mark.parametrize(
    ("devices", "rows", "mixer", "mode"),
    [
        pytest.param(2, 1, ONE, "on_wait", id="two of one kv head, across tiles"),
        pytest.param(4, 2, WINDOW, "eager", id="two of each kv head, a window"),
        pytest.param(4, 3, WIDE, "eager", id="four of one kv head, norms over all", marks=pytest.mark.long),
        pytest.param(4, 2, TWO, "on_wait", id="two of each kv head, on_wait", marks=pytest.mark.long),
    ],
)
def test_devices_agree_with_the_reference(devices: int, rows: int, mixer: dict[str, Any], mode: Mode) -> None:
    agrees(request(in_format(two_layers(mixer), "f32"), devices, rows, context=60), mode)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_rounded_caches_differ_by_no_more_than_rounding(dtype: str) -> None:
    spec = in_format(small_spec(TWO), "bf16")
    agrees(request(spec.model_copy(update={"kv": spec.kv.model_copy(update={"dtype": dtype})}), 4), "eager")


@pytest.mark.long
def test_rows_that_are_tokens_agree_with_the_reference() -> None:
    agrees(request(in_format(small_spec(TWO), "f32"), 4, 8, "tokens"), "eager")


@pytest.mark.slow
def test_layers_of_several_kinds_agree_with_the_reference() -> None:
    agrees(request(in_format(mixed(), "f32"), 4), "on_wait")


@pytest.mark.parametrize(
    ("devices", "rows", "rows_are", "mixer"),
    [
        pytest.param(8, 2, "sequences", TWO, id="four of each kv head"),
        pytest.param(6, 2, "sequences", {"heads": 6, "kv_heads": 2}, id="three of each, no power of two"),
        pytest.param(8, 2, "sequences", {"heads": 6, "kv_heads": 3}, id="a pair that holds padding"),
        pytest.param(4, 2, "sequences", TWO | {"chunk": 24}, id="chunks"),
        pytest.param(8, 2, "sequences", {"heads": 8, "kv_heads": 1, "window": 21}, id="a window, one tile a device"),
        pytest.param(8, 8, "tokens", {"heads": 8, "kv_heads": 1, "window": 21}, id="tokens, one tile a device"),
        pytest.param(32, 3, "sequences", {"heads": 32, "kv_heads": 8}, id="32 devices"),
        pytest.param(4, 8, "tokens", WINDOW, id="tokens, a window"),
    ],
)
def test_devices_are_proven(devices: int, rows: int, rows_are: RowsAre, mixer: dict[str, Any]) -> None:
    asked = request(in_format(small_spec(mixer), "f32"), devices, rows, rows_are)
    verdict = verify(build(asked)[1], limits_of(asked.target))
    assert verdict.proven, str(verdict)


@pytest.mark.parametrize(
    ("phase", "gone", "storage"),
    [
        ("combine", "shared_heads_softmax_arrived", "shared_heads_softmax_in"),
        ("join_queries", "shared_heads_q_arrived", "shared_heads_q"),
    ],
)
def test_the_proof_wants_every_wait_for_a_peer(phase: str, gone: str, storage: str) -> None:
    asked = request(in_format(small_spec(TWO), "f32"), 4)
    program = rewritten(build(asked)[1], phase, lambda op: None if gone in str(getattr(op, "semaphore", "")) else op)
    refusals = verify(program, limits_of(asked.target)).refusals
    assert storage in {refusal.storage for refusal in refusals} | {str(refusal) for refusal in refusals}


def test_layers_of_a_kind_exchange_through_the_same_buffers_and_others_not_at_all() -> None:
    asked = request(in_format(mixed(), "f32"), 4)
    program = build(asked)[1]
    exchanged = {buffer.name for buffer in program.buffers if buffer.name.startswith("shared_heads")}
    assert exchanged == {
        "shared_heads_q", "shared_heads_softmax_out", "shared_heads_softmax_in",
        "shared_heads_1_q", "shared_heads_1_softmax_out", "shared_heads_1_softmax_in",
    }  # fmt: skip
    rows = {array.name: array.rows for array in program.arrays}
    whole = {array.name: array.rows for array in build(replace(asked, shape=_by_heads(asked)))[1].arrays}
    assert [whole[name] / rows[name] for name in ("kv_0_0", "kv_1_0", "kv_1_1")] == [3, 2, 1]


def _by_heads(asked: Request) -> StepShape:
    return replace(asked.shape, placement=HEADS)


def paged(spec: ModelSpec) -> ModelSpec:
    kv = {"dtype": "f32", "layout": "paged", "page_tokens": 16}
    return ModelSpec.model_validate(in_format(spec, "f32").model_dump(mode="json") | {"kv": kv})


@pytest.mark.parametrize(
    "spec", [small_spec(ONE), small_spec(ONE | {"window": 21}), latent_spec()], ids=["heads", "window", "latents"]
)
def test_a_page_is_a_tile_on_each_device(spec: ModelSpec) -> None:
    """So all devices have one table, with fewer pages: of the 6 tiles of a sequence a device has 3."""
    asked = request(paged(spec), 2)
    program = build(asked)[1]
    (table,) = (scalars for scalars in program.scalars if scalars.name == "page")
    assert (table.length, table.high, table.distinct) == (6, 5, True)
    assert verify(program, limits_of(asked.target)).proven
    others = tuple(replace(scalars, distinct=False) for scalars in program.scalars)
    refusals = verify(replace(program, scalars=others), limits_of(asked.target)).refusals
    assert {refusal.storage for refusal in refusals} == {"kv"}


@pytest.mark.long
@pytest.mark.parametrize("spec", [small_spec(TWO), latent_spec()], ids=["heads", "latents"])
def test_pages_in_any_order_agree_with_the_reference(spec: ModelSpec) -> None:
    asked = request(paged(spec), 4, context=60)
    agrees(replace(asked, shape=replace(asked.shape, pages=9)), "on_wait")


@pytest.mark.parametrize(
    ("devices", "rows", "mixer", "kv"),
    [
        pytest.param(4, 3, WINDOW, {"dtype": "fp8"}, id="three heads a device", marks=pytest.mark.slow),
        pytest.param(8, 8, WIDE | ONE, {}, id="one head a device", marks=pytest.mark.long),
        pytest.param(4, 2, TWO, {"layout": "paged", "page_tokens": 16}, id="pages", marks=pytest.mark.long),
    ],
)
def test_the_tpu_compiler_takes_it(
    devices: int, rows: int, mixer: dict[str, Any], kv: dict[str, Any], tmp_path: Path
) -> None:
    from schedc.compiler.check import check

    spec = ModelSpec.model_validate(small_spec(mixer).model_dump(mode="json") | {"kv": kv})
    compiled = compile_model(replace(request(spec, devices, rows), policy="ring"))
    kernel = tmp_path / "kernel.py"
    kernel.write_text(compiled.kernel.source)
    assert check(compiled, kernel).problems == ()

"""Block attention residuals in generated kernels, against the reference; f32, so that any mistake shows."""

from itertools import product
from typing import Any

import pytest

from schedc.compiler.trial import problems
from schedc.ir.program import Compute, When, walk
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.small_specs import LAYER, RMS, latent_spec, small_spec

pytestmark = pytest.mark.kernel

RESIDUAL = {"kind": "block_attention", "eps": 1e-5}


def in_blocks(block: int, repeats: tuple[int, ...] = (3,), period: int = 1, **changes: Any) -> ModelSpec:
    """Runs of `repeats` trips of `period` layers, latent attention at the last place of each, in blocks of layers."""
    grouped = small_spec().model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"][0]
    latent = latent_spec().model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"][0]
    pattern = [grouped] * (period - 1) + [latent]
    layers = [{"repeat": repeat, "pattern": pattern} for repeat in repeats]
    return in_format(small_spec(layers=layers, residual=RESIDUAL | {"block": block}, **changes), "f32")


SPECS = {
    "every layer is a block": in_blocks(1),
    "blocks divide the loop": in_blocks(2, (4,)),
    "one block": in_blocks(9),
    "a block is longer than the period": in_blocks(3, (4,), period=2),
    "a block goes over the ends of runs": in_blocks(4, (1, 3, 1), period=2),
    "outputs are normalised": small_spec(block={"placement": "sandwich"}, residual=RESIDUAL | {"block": 2}),
    "inputs are not normalised": small_spec(block={"placement": "post"}, residual=RESIDUAL | {"block": 2}),
    "norms subtract the mean": small_spec(block={"norm": LAYER}, residual=RESIDUAL | {"block": 2}),
    "norms scale first": small_spec(block={"norm": RMS | {"scale_first": True}}, residual=RESIDUAL | {"block": 2}),
    "hidden of several panels": in_blocks(3, (4,), period=2, hidden=264),
}
QUICK = {
    ("a block goes over the ends of runs", 1, "eager"),
    ("a block goes over the ends of runs", 2, "on_wait"),
    ("norms subtract the mean", 1, "on_wait"),
}


def cases() -> list:
    """Every spec in both modes of transfers, with one row and with several."""
    found = []
    for name, rows, mode in product(SPECS, (1, 2), ("eager", "on_wait")):
        # Of the other cases one row in one mode is run every time.
        dear = pytest.mark.slow if (rows, mode) == (1, "on_wait") else pytest.mark.long
        marks = [] if (name, rows, mode) in QUICK else [dear]
        found.append(pytest.param(name, rows, mode, marks=marks, id=f"{name}, rows {rows}, {mode}"))
    return found


@pytest.mark.parametrize(("name", "rows", "mode"), cases())
def test_the_kernel_agrees_with_the_reference(name: str, rows: int, mode: Mode) -> None:
    spec, shape = in_format(SPECS[name], "f32"), StepShape(rows, 50, logits=True)
    beside = trial(build_kernel(spec, shape, small_tiles("ring")), spec, shape, mode)
    for positions in ((0, 47), (17, 32)):
        outcome, raced = step(beside, positions[:rows])
        assert problems(outcome, spec) == []
        assert not raced


@pytest.mark.parametrize("rows", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_bf16_kernel_differs_by_no_more_than_rounding(rows: int) -> None:
    spec, shape = in_format(in_blocks(3, (4,), period=2), "bf16"), StepShape(rows, 50, logits=True)
    beside = trial(build_kernel(spec, shape, small_tiles("ring")), spec, shape, "eager")
    outcome, raced = step(beside, (5, 20, 41)[:rows])
    assert problems(outcome, spec) == []
    assert not raced


def computes(spec: ModelSpec, kind: str) -> list[Compute]:
    made = build_kernel(spec, StepShape(rows=2, context=50), small_tiles("ring")).program
    return [op for op in walk(made.body) if isinstance(op, Compute) and op.kind == kind]


def guarded(spec: ModelSpec, kind: str) -> list[Compute]:
    made = build_kernel(spec, StepShape(rows=2, context=50), small_tiles("ring")).program
    inside = [op for guard in walk(made.body) if isinstance(guard, When) for op in guard.body]
    return [op for op in inside if isinstance(op, Compute) and op.kind == kind]


def test_the_first_layer_reads_the_embedding_itself() -> None:
    """Alone in its run its mixture has no other source: the mixer's input is a norm of x, all later ones are mixed."""
    spec = in_blocks(4, (1, 2))
    of_stream = [op for op in computes(spec, "norm") if ("columns", spec.hidden) in op.attributes]
    assert len(of_stream) == 1
    assert len(computes(spec, "mixed_norm")) == 1 + 2 + 1


def test_a_sum_is_stored_where_a_block_begins_and_nowhere_else() -> None:
    """Blocks of 3 begin at either place of a period of 2, and only the counter knows when; blocks of 2 at one."""
    in_three, in_two = in_blocks(3, (4,), period=2), in_blocks(2, (4,), period=2)
    assert len(computes(in_three, "append_sum")) == len(guarded(in_three, "append_sum")) == 2
    assert len(computes(in_two, "append_sum")) == 1
    assert not guarded(in_two, "append_sum")


def test_a_mixture_goes_through_no_more_sums_than_there_can_be() -> None:
    sources = [dict(op.attributes)["sources"] for op in computes(in_blocks(2, (2, 2)), "mixed_norm")]
    assert sources == [1, 1, 2, 2, 2]

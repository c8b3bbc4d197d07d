"""Every product of a format against the dequantised weights, in the interpreter; its file and its table agree."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import schedc.backends.pallas.operations.products as package
from schedc.errors import UserError
from schedc.ir.program import Compute
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.products import EXACT_FORMS, ProductTable, products_file
from schedc.target.target import Target, list_targets, parse_target
from schedc.weights.formats import FORMATS
from schedc.weights.formats.format import join_panels

ALL = [(stored, form) for stored, forms in products_file().forms.items() for form in forms]
PANELS = 2


@cache
def product(stored: str, form: str) -> Callable:
    for path in sorted(Path(package.__file__).parent.glob("*.py")):
        module = import_module(f"{package.__name__}.{path.stem}")
        if hasattr(module, f"{stored}_{form}"):
            return getattr(module, f"{stored}_{form}")
    raise AssertionError(f"no function is called {stored}_{form}")


def relative_error(stored: str, form: str, dtype: str, sequences: int, depth: int) -> float:
    """Largest difference to left · dequantised weights, relative to the largest result."""
    random = np.random.default_rng(0)
    numbers = FORMATS[stored].nearest(random.standard_normal((PANELS * 128, depth)).astype(np.float32))
    words = join_panels(FORMATS[stored].to_words(numbers, depth))
    rows = 16 if dtype == "bf16" or sequences > 8 else 8
    left = jnp.asarray(random.standard_normal((rows, depth)), {"bf16": jnp.bfloat16, "f32": jnp.float32}[dtype])

    def kernel(x, w, out):
        out[...] = product(stored, form)(x[...], w, sequences, depth, PANELS, dtype)[: max(8, sequences)]

    shape = jax.ShapeDtypeStruct((max(8, sequences), PANELS * 128), jnp.float32)
    found = np.asarray(pl.pallas_call(kernel, out_shape=shape, interpret=True)(left, words))[:sequences]
    expected = np.asarray(left, np.float32)[:sequences] @ FORMATS[stored].decode(numbers).T
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.kernel
@pytest.mark.parametrize(("stored", "form"), [(s, f) for s, f in ALL if f in EXACT_FORMS])
def test_f32_rows_meet_exactly_the_dequantised_weights(stored: str, form: str) -> None:
    assert relative_error(stored, form, "f32", 5, 320) < 2e-6


@pytest.mark.kernel
@pytest.mark.parametrize(("stored", "form"), ALL)
def test_bf16_rows_lose_nothing_but_what_a_dequantised_weight_loses_in_bf16(stored: str, form: str) -> None:
    """Codes, and their products with an e8m0 or e4m3 scale, are exact in bf16; the other scales are not."""
    rounds = (form == "dequantised" and stored not in ("mxfp4", "nvfp4")) or stored == "f32"
    assert relative_error(stored, form, "bf16", 8, 320) < (4e-3 if rounds else 2e-6)


@pytest.mark.kernel
@pytest.mark.parametrize("sequences", [1, 3, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("stored", "form"), [(s, f) for s, f in ALL if f.endswith("block_diagonal")])
def test_block_diagonal_left_sides_hold_for_any_number_of_rows(stored: str, form: str, sequences: int) -> None:
    assert relative_error(stored, form, "bf16", sequences, 320 if sequences == 3 else 512) < 2e-6


def test_every_form_of_the_table_is_a_function_with_the_arguments_of_a_product() -> None:
    arguments = ["left", "words", "rows", "depth", "panels", "dtype"]
    assert {tuple(inspect.signature(product(*names)).parameters) for names in ALL} == {tuple(arguments)}
    assert set(products_file().forms) == set(FORMATS)


@pytest.mark.parametrize("target", list_targets(), ids=lambda target: target.chip.name)
def test_every_form_that_a_chip_can_take_has_been_measured_on_it(target: Target) -> None:
    table = ProductTable.of(target)
    assert target.chip.name in table.file.chips
    usable = {f"{stored}_{form}" for stored in FORMATS for form in table.usable(stored, "bf16")}
    assert {row.product for row in table.rows} == usable


# ---- the choice


def spec_in(stored: str, **quantization: str) -> ModelSpec:
    spec = load_spec("smollm2-135m")
    changed = spec.quantization.model_copy(update={"weights": stored, **quantization})
    return spec.model_copy(update={"quantization": changed})


def products_of(spec: ModelSpec, rows: int, target: Target, **shape) -> set[str]:
    from schedc.ir.program import walk

    program = schedule(spec, StepShape(rows, 256, **shape), target).program
    return {
        str(value)
        for op in walk(program.body)
        if isinstance(op, Compute)
        for name, value in op.attributes
        if name == "product"
    }


def test_the_form_with_the_fewest_cycles_for_the_rows_is_taken() -> None:
    tpu7x = parse_target("tpu7x")
    assert products_of(spec_in("nvfp4"), 1, tpu7x) == {"nvfp4_block_diagonal", "bf16_direct"}
    assert products_of(spec_in("nvfp4"), 16, tpu7x) == {"nvfp4_dequantised", "bf16_direct"}
    assert products_of(spec_in("int8", attention="fp8"), 8, tpu7x) == {
        "int8_scaled_after", "fp8_scaled_after", "bf16_direct",
    }  # fmt: skip


def test_f32_rows_take_an_exact_form() -> None:
    exact = spec_in("mxfp4", arithmetic="f32")
    assert products_of(exact, 8, parse_target("tpu7x")) == {"mxfp4_dequantised", "bf16_direct"}
    assert products_of(exact, 8, parse_target("v6e")) == {"mxfp4_recoded", "bf16_direct"}


def test_a_chip_without_e2m1_recodes_it() -> None:
    assert products_of(spec_in("mxfp4"), 1, parse_target("v5e")) == {"mxfp4_recoded_block_diagonal", "bf16_direct"}


def test_a_form_can_be_asked_for_by_name() -> None:
    forms = (("mxfp4", "dequantised"),)
    assert "mxfp4_dequantised" in products_of(spec_in("mxfp4"), 1, parse_target("tpu7x"), forms=forms)
    with pytest.raises(UserError, match="weights in mxfp4 have no form 'fast'; they have dequantised, "):
        products_of(spec_in("mxfp4"), 1, parse_target("tpu7x"), forms=(("mxfp4", "fast"),))
    with pytest.raises(UserError, match=r"form dequantised of mxfp4 needs .* fp4_e2m1, which v6e cannot; it can"):
        products_of(spec_in("mxfp4"), 1, parse_target("v6e"), forms=forms)


def test_a_chip_that_can_take_no_form_is_refused_with_what_each_needs() -> None:
    target = parse_target("v5e")
    capability = target.capability.model_copy(update={"word_bitcasts": ("f32", "bf16")})
    bare = replace(target, chip=target.chip.model_copy(update={"capability": capability}))
    needs = r"int4_g32 with bf16 rows cannot run on v5e, .* as f32, bf16: dequantised needs int4; block_diag"
    with pytest.raises(UserError, match=needs):
        products_of(spec_in("int4_g32"), 1, bare)

"""A kernel with every product that a chip can take, for one sequence and for sixteen, bf16 rows and f32 rows."""

from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

import schedc.backends.pallas.operations.products as package
from schedc.target.products import ProductTable
from schedc.target.target import parse_target
from schedc.weights.formats import FORMATS

NAME = "products"
TARGET = parse_target("tpu7x")
DEPTH, PANELS = 320, 2  # no whole number of chunks of 256 inputs
ROWS = max(known.panel_rows(DEPTH) for known in FORMATS.values()) * PANELS
ARGUMENTS = {
    "narrow": ("bfloat16", (16, DEPTH)),
    "wide": ("float32", (16, DEPTH)),
    "words": ("int32", (ROWS, 128)),
}
STATE = ()
MODULES = [import_module(f"{package.__name__}.{path.stem}") for path in Path(package.__file__).parent.glob("*.py")]
FUNCTIONS = {name: function for module in MODULES for name, function in vars(module).items()}


def cases():
    table = ProductTable.of(TARGET)
    for stored, known in FORMATS.items():
        for dtype, sequences in (("bf16", 1), ("bf16", 16), ("f32", 16)):
            for form in table.usable(stored, dtype):
                yield FUNCTIONS[f"{stored}_{form}"], known.panel_rows(DEPTH) * PANELS, dtype, sequences


def body(narrow, wide, words, out):
    for number, (product, rows, dtype, sequences) in enumerate(cases()):
        left = narrow if dtype == "bf16" else wide
        result = product(left[...], words.at[pl.ds(0, rows), :], sequences, DEPTH, PANELS, dtype)
        out[pl.ds(8 * number, 8), :] = result[:8]


def decode_step(mesh, *, interpret=False):
    call = pl.pallas_call(
        body,
        name=NAME,
        out_shape=jax.ShapeDtypeStruct((8 * len(list(cases())), PANELS * 128), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)] * 3,
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        interpret=interpret,
    )
    everywhere = PartitionSpec()
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=(everywhere,) * 3, out_specs=everywhere, check_vma=False))

"""Issue cycles of every product of a format, from the TPU compiler, into schedc/target/products.yaml.

    python benchmarks/products.py measure [CHIP …]    measure again (all chips of the table: a few minutes each)
    python benchmarks/products.py compare [CHIP …]    measure, print beside the table what differs by more than 2 %

A product is compiled alone, its operands in VMEM, at two sizes: cycles = base + inputs · columns · slope.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from schedc.backends.pallas.aot.environment import compiler_environment
from schedc.target.products import PATH, ProductTable
from schedc.target.target import Target, parse_target
from schedc.weights.formats import FORMATS
from schedc.yaml_text import format_yaml, parse_yaml

DUMPS = Path(tempfile.mkdtemp(prefix="schedc-products-"))
os.environ |= compiler_environment(DUMPS)
ROWS_MEASURED = (1, 2, 4, 8, 16)
PRODUCTS = "schedc.backends.pallas.operations.products"
FOLDER = Path(__file__).parents[1] / "backends" / "pallas" / "operations" / "products"


@cache
def functions() -> dict[str, Callable]:
    """Every function of the products, by name."""
    modules = (import_module(f"{PRODUCTS}.{path.stem}") for path in sorted(FOLDER.glob("*.py")))
    return {name: function for module in modules for name, function in inspect.getmembers(module, inspect.isfunction)}


def cycles(target: Target, stored: str, form: str, rows: int, depth: int, columns: int) -> int:
    """Issue cycles of a kernel that does nothing else."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl
    from jax.experimental import topologies
    from jax.experimental.pallas import tpu as pltpu
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    panels, name = columns // 128, f"{stored}_{form}"
    function = functions()[name]
    words = panels * FORMATS[stored].panel_rows(depth)
    height = max(8, rows)

    def kernel(x, w, out):
        out[...] = function(x[...], w, rows, depth, panels, "bf16")[:height]

    def step(x, w):
        return pl.pallas_call(
            kernel,
            name=name,
            out_shape=jax.ShapeDtypeStruct((height, columns), jnp.float32),
            in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)] * 2,
            out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
            compiler_params=pltpu.CompilerParams(vmem_limit_bytes=target.capability.vmem_usable_bytes // 2),
        )(x, w)

    topology = topologies.get_topology_desc(platform="tpu", topology_name=target.topology_name)
    one = NamedSharding(Mesh(np.array(topology.devices[:1]), ("device",)), PartitionSpec())
    shapes = ((16, depth), jnp.bfloat16), ((words, 128), jnp.int32)
    jax.jit(step).lower(*(jax.ShapeDtypeStruct(*shape, sharding=one) for shape in shapes)).compile()
    analysis = sorted(DUMPS.glob(f"*-{name}.*schedule-analysis_packed-bundles-post-ra.txt"))[-1].read_text()
    for path in DUMPS.iterdir():
        path.unlink()
    found = re.search(r"total scheduled bundles:\s+(\d+)", analysis)
    assert found is not None, analysis[:200]
    return int(found[1])


def measured(chip: str) -> Iterator[dict]:
    target = parse_target(chip)
    table = ProductTable.of(target)
    for stored in table.file.forms:
        for form in table.usable(stored, "bf16"):
            for rows in ROWS_MEASURED if form.endswith("block_diagonal") else ROWS_MEASURED[-1:]:
                sizes = table.file.small, table.file.large
                small, large = (cycles(target, stored, form, rows, *size) for size in sizes)
                print(chip, stored, form, rows, small, large, flush=True)
                yield {"product": f"{stored}_{form}", "rows": rows, "small": small, "large": large}


def main(command: str, chips: list[str]) -> None:
    data = parse_yaml(PATH.read_text())
    for chip in chips or list(data["chips"]):
        found = list(measured(chip))
        if command == "measure":
            data["chips"][chip] = found
            data["versions"] = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "libtpu"))
            head = "# Issue cycles of products of bf16 rows with weights in a format, operands in VMEM.\n"
            PATH.write_text(head + "# Made by: python benchmarks/products.py measure\n" + format_yaml(data))
            continue
        before = {(row["product"], row["rows"]): row["large"] for row in data["chips"][chip]}
        for row in found:
            old = before.get((row["product"], row["rows"]))
            if old is None or abs(row["large"] / old - 1) > 0.02:
                print(f"{chip} {row['product']} {row['rows']} rows: {old} in the table, {row['large']} now")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

"""A small kernel in the form the emitter writes: layers in a loop, two weight slots, a cache updated in place.

y = (8 rows, 128 lanes) goes through `LAYERS` layers of y += y @ w[layer] (bf16, as panels of words), then through the
cache: rows `0 … position` are streamed in tiles and added up, and the row of the newest position is written back.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

NAME = "layers"
LAYERS, WEIGHT, TILE, TILES = 6, 64, 16, 8
ARGUMENTS = {
    "position": ("int32", (1,)),
    "embedding": ("int32", (64, 128)),
    "weights": ("int32", (LAYERS * WEIGHT, 128)),
    "cache": ("int32", (TILE * TILES, 128)),
}
STATE = ("cache",)


def start(source, source_row, target, target_row, rows, semaphore):
    pltpu.make_async_copy(source.at[pl.ds(source_row, rows)], target.at[pl.ds(target_row, rows)], semaphore).start()


def wait(source, target, rows, semaphore):
    pltpu.make_async_copy(source.at[pl.ds(0, rows)], target.at[pl.ds(0, rows)], semaphore).wait()


def multiply(x, pool, row):
    weight = pltpu.bitcast(pool[row : row + WEIGHT], jnp.bfloat16)
    return jnp.dot(x.astype(jnp.bfloat16), weight, preferred_element_type=jnp.float32)


def body(position, embedding, weights, cache, out, cache_out, pool, tiles, y, token, arrived, filled, single):
    start(weights, 0, pool, 0, WEIGHT, arrived.at[0])
    start(embedding, position[0], token, 0, 1, single.at[0])
    wait(embedding, token, 1, single.at[0])
    y[...] = jnp.zeros(y.shape, y.dtype)
    y[0:1] = token[0:1].astype(jnp.float32)

    @pl.loop(0, LAYERS // 2)
    def _(pair):
        @pl.when(2 * pair + 1 < LAYERS)
        def _():
            start(weights, (2 * pair + 1) * WEIGHT, pool, WEIGHT, WEIGHT, arrived.at[1])

        wait(weights, pool, WEIGHT, arrived.at[0])
        y[...] += multiply(y[...], pool, 0)

        @pl.when(2 * pair + 2 < LAYERS)
        def _():
            start(weights, (2 * pair + 2) * WEIGHT, pool, 0, WEIGHT, arrived.at[0])

        wait(weights, pool, WEIGHT, arrived.at[1])
        y[...] += multiply(y[...], pool, WEIGHT)

        count = lax.div(position[0], TILE) + 1
        start(cache_out, 0, tiles, 0, TILE, filled.at[0])

        @pl.loop(0, count)
        def _(tile):
            slot = lax.rem(tile, 2)

            @pl.when(tile + 1 < count)
            def _():
                start(cache_out, (tile + 1) * TILE, tiles, (1 - slot) * TILE, TILE, filled.at[1 - slot])

            wait(cache_out, tiles, TILE, filled.at[slot])
            y[...] += tiles[pl.ds(slot * TILE, 8)].astype(jnp.float32)

        token[0:1] = y[0:1].astype(jnp.int32)
        start(token, 0, cache_out, position[0], 1, single.at[0])
        wait(token, cache_out, 1, single.at[0])

    out[...] = y[...]


def decode_step(mesh, *, interpret=False):
    call = pl.pallas_call(
        body,
        name=NAME,
        out_shape=(jax.ShapeDtypeStruct((8, 128), jnp.float32), jax.ShapeDtypeStruct(ARGUMENTS["cache"][1], jnp.int32)),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)] + [pl.BlockSpec(memory_space=pltpu.HBM)] * 3,
        out_specs=[pl.BlockSpec(memory_space=pltpu.VMEM), pl.BlockSpec(memory_space=pltpu.HBM)],
        input_output_aliases={3: 1},
        scratch_shapes=[
            pltpu.VMEM((2 * WEIGHT, 128), jnp.int32),
            pltpu.VMEM((2 * TILE, 128), jnp.int32),
            pltpu.VMEM((8, 128), jnp.float32),
            pltpu.VMEM((8, 128), jnp.int32),
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.DMA((1,)),
        ],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=16 * 2**20),
        interpret=interpret,
    )

    def step(position, embedding, weights, cache):
        # Without the constraint XLA may move a small operand to VMEM, and its transfers become vector copies.
        in_hbm = (pltpu.with_memory_space_constraint(array, pltpu.HBM) for array in (embedding, weights))
        return call(position, *in_hbm, cache)

    everywhere = PartitionSpec()
    sharded = jax.shard_map(
        step, mesh=mesh, in_specs=(everywhere,) * len(ARGUMENTS), out_specs=(everywhere, everywhere), check_vma=False
    )
    return jax.jit(sharded, donate_argnums=tuple(list(ARGUMENTS).index(name) for name in STATE))

"""A kernel that copies each of its buffers onto itself: what is not used, the compiler drops."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

NAME = "buffers"
ARGUMENTS = {"x": ("int32", (8, 128))}
STATE = ()
VMEM = (("float32", (8, 128)),)
SMEM = ((5,),)


def body(x, out, *scratch):
    buffers, scalars, done = scratch[: len(VMEM)], scratch[len(VMEM) : -1], scratch[-1]
    for source, target in [*((buffer, buffer) for buffer in buffers), (x, out)]:
        copy = pltpu.make_async_copy(source, target, done.at[0])
        copy.start()
        copy.wait()
    for words in scalars:
        words[(0,) * words.ndim] = jnp.int32(0)


def decode_step(mesh, *, interpret=False):
    call = pl.pallas_call(
        body,
        name=NAME,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32),
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
        scratch_shapes=[
            *(pltpu.VMEM(shape, getattr(jnp, dtype)) for dtype, shape in VMEM),
            *(pltpu.SMEM(shape, jnp.int32) for shape in SMEM),
            pltpu.SemaphoreType.DMA((1,)),
        ],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=64 * 2**20 - 65536, disable_bounds_checks=True),
        interpret=interpret,
    )
    everywhere = PartitionSpec()
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=(everywhere,), out_specs=everywhere, check_vma=False))

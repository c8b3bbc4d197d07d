"""A kernel for eight devices: each sends its rows one and two devices on and adds up what it gets."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

NAME = "exchange"
DEVICES, ROWS = 8, 16
ARGUMENTS = {"x": ("float32", (DEVICES * ROWS, 128))}
STATE = ()


def copy_to(x, box, sent, arrived, distance):
    peer = lax.rem(lax.axis_index("device") + distance, DEVICES)
    slot = box.at[pl.ds(ROWS * distance, ROWS)]
    return pltpu.make_async_remote_copy(x, slot, sent.at[distance], arrived.at[distance], device_id={"device": peer})


def start_remote(x, box, sent, arrived, distance):
    copy_to(x, box, sent, arrived, distance).start()


def wait_received(x, box, sent, arrived, distance):
    copy_to(x, box, sent, arrived, distance).wait_recv()


def wait_sent(x, box, sent, arrived, distance):
    copy_to(x, box, sent, arrived, distance).wait_send()


def meet(distances):
    barrier = pltpu.get_barrier_semaphore()
    for distance in distances:
        peer = lax.rem(lax.axis_index("device") + distance, DEVICES)
        pl.semaphore_signal(barrier, 1, device_id={"device": peer})
    pl.semaphore_wait(barrier, len(distances))


def body(x, out, box, sent, arrived):
    meet((1, 2))
    start_remote(x, box, sent, arrived, 1)
    start_remote(x, box, sent, arrived, 2)
    wait_received(x, box, sent, arrived, 1)
    wait_received(x, box, sent, arrived, 2)
    out[...] = x[...] + box[ROWS : 2 * ROWS] + box[2 * ROWS : 3 * ROWS]
    wait_sent(x, box, sent, arrived, 1)
    wait_sent(x, box, sent, arrived, 2)


def decode_step(mesh, *, interpret=False):
    call = pl.pallas_call(
        body,
        name=NAME,
        out_shape=jax.ShapeDtypeStruct((ROWS, 128), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        scratch_shapes=[
            pltpu.VMEM((3 * ROWS, 128), jnp.float32),
            pltpu.SemaphoreType.DMA((3,)),
            pltpu.SemaphoreType.DMA((3,)),
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0),
        interpret=interpret,
    )
    shard = PartitionSpec("device")
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=(shard,), out_specs=shard, check_vma=False))

"""A left side in blocks of one group each, so that one dot of raw codes gives a sum for every group of inputs."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.products.sections import mixed_dot
from schedc.backends.pallas.operations.words import DTYPES, stack

CHUNK = 256  # inputs a dot: the rows of an MXU


def block_diagonal_dot(left, codes, scales, rows, group, dtype):
    """f32[8 or more, n] = Σ over groups of (left of the group · its codes) · scales[group].

    Of 256 inputs the left side is [groups · rows, 256], zero outside of a block's group. codes[depth, n] of any dtype
    that a dot takes beside bf16, scales f32[groups or more, n].
    """
    groups = CHUNK // group
    apart = groups % 8 == 0 and scales.shape[0] >= -(-codes.shape[0] // CHUNK) * groups
    order = row_blocks if apart and rows <= 4 else group_blocks
    return order(left[: max(8, rows)].astype(jnp.float32), codes, scales, rows, group, dtype)


def group_blocks(left, codes, scales, rows, group, dtype):
    """Blocks of all rows, one a group: sums are scaled by a row of scales and added up as they come."""
    depth, height, total = codes.shape[0], left.shape[0], 0.0
    for start in range(0, depth, CHUNK):
        inputs = min(CHUNK, depth - start)
        groups = -(-inputs // group)
        part = left[:, start : start + inputs]
        lane = lax.broadcasted_iota(jnp.int32, part.shape, 1)
        blocks = [
            jnp.where((lane >= index * group) & (lane < (index + 1) * group), part, 0.0) for index in range(groups)
        ]
        sums = mixed_dot(stack(blocks).astype(DTYPES[dtype]), codes[start : start + inputs])
        for index in range(groups):
            place = start // group + index
            total = total + sums[index * height : (index + 1) * height] * scales[place : place + 1]
    return total


def row_blocks(left, codes, scales, rows, group, dtype):
    """Blocks of all groups of 256 inputs, one a row: sums keep their groups apart until the end."""
    depth, groups = codes.shape[0], CHUNK // group
    totals = [0.0] * rows
    for start in range(0, depth, CHUNK):
        part = left[:, start : min(start + CHUNK, depth)]
        lane = lax.broadcasted_iota(jnp.int32, (groups, part.shape[1]), 1)
        first = lax.broadcasted_iota(jnp.int32, (groups, part.shape[1]), 0) * group
        inside = (lane >= first) & (lane < first + group)
        blocks = [jnp.where(inside, part[row : row + 1], 0.0) for row in range(rows)]
        sums = mixed_dot(stack(blocks).astype(DTYPES[dtype]), codes[start : start + CHUNK])
        scale = scales[start // group : start // group + groups]
        totals = [total + sums[row * groups : (row + 1) * groups] * scale for row, total in enumerate(totals)]
    results = [jnp.sum(total, axis=0, keepdims=True) for total in totals]
    return stack([*results, jnp.zeros((8 - rows, codes.shape[1]), jnp.float32)])

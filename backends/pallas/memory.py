"""What a kernel's memory takes, to the byte, as the TPU compiler counts it.

The formulas were found by experiment on all chips and both jax lines, and a test holds them to the compiler: see
docs/decisions/007-bytes-of-the-compiler.md.
"""

from math import prod

from schedc.backends.pallas.emit.devices import extra_semaphores
from schedc.ir.program import Program

LANES = 128
SUBLANES = 8
WORD_BITS = 32


def vmem_bytes(shape: tuple[int, ...], bits: int) -> int:
    """Bytes of a VMEM buffer of `bits`-bit elements (4, 8, 16 or 32), of one dimension or more, tile padding included.

    The last two dimensions are cut into tiles of `tile_rows` × 128, the last one alone into vectors of 128 words. An
    element of 4 bits takes a byte, though it is laid out as 4 bits.
    """
    packing = WORD_BITS // bits
    if len(shape) == 1:
        elements = _up(shape[0], LANES * packing)
    else:
        *outer, rows, columns = shape
        elements = prod(outer) * _up(rows, tile_rows(rows, packing)) * _up(columns, LANES)
    return elements * max(bits, 8) // 8


def tile_rows(rows: int, packing: int) -> int:
    """Rows of a tile: as many as fill 8 sublanes with whole words if the buffer's rows allow, else 8 or fewer.

    A tile has at least the rows of one word, `packing`.
    """
    if rows % (SUBLANES * packing) == 0:
        return SUBLANES * packing
    if rows >= SUBLANES:
        return SUBLANES
    return max(packing, 1 << max(rows - 1, 0).bit_length())


def pool_bytes(rows: int) -> int:
    """Bytes of a pool `int32[rows, 128]` in VMEM."""
    return vmem_bytes((rows, LANES), WORD_BITS)


def smem_bytes(shape: tuple[int, ...], bits: int = WORD_BITS) -> int:
    """Bytes of an SMEM array of `bits`-bit elements: padded as in VMEM, so words take multiples of 512 bytes.

    Inputs and scratch take the same. Registers that the compiler spills come on top.
    """
    return vmem_bytes(shape, bits)


def added_semaphores(program: Program, per_mixed_input: int = 0) -> int:
    """Semaphores that a program's kernel takes beside the declared ones: for its barriers, and to fetch its scalars.

    For inputs and tables in SMEM of more than one word the compiler takes one semaphore, and one more for every two;
    where another has just one word, XLA takes up to `per_mixed_input` for each of them. A table is counted even if all
    its indices are static and it is not in SMEM.
    """
    lengths = [scalars.length for scalars in program.scalars if scalars.role != "local"]
    fetched = sum(length > 1 for length in lengths)
    taken = 1 + fetched // 2 if fetched else 0
    mixed = per_mixed_input * fetched if 1 in lengths else 0
    return extra_semaphores(program) + taken + mixed


def _up(size: int, step: int) -> int:
    return -(-size // step) * step

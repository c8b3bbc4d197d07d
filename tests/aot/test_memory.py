"""Predicted bytes of buffers in VMEM and SMEM are those that the TPU compiler allocates."""

import random
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.memory import smem_bytes, vmem_bytes
from schedc.target.target import parse_target

from .conftest import KERNELS

Shape = tuple[int, ...]
BITS = {
    "float32": 32,
    "int32": 32,
    "uint32": 32,
    "bfloat16": 16,
    "int8": 8,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "int4": 4,
    "float4_e2m1fn": 4,
}
LARGEST = 400_000  # Bytes of one buffer; 70 of them fit into every chip's VMEM.


def random_size(rng: random.Random) -> int:
    """Small, near a multiple of a tile's rows or lanes, or any."""
    tile = rng.choice((8, 16, 32, 64, 128)) * rng.randint(1, 3) + rng.randint(-1, 1)
    return rng.choice((rng.randint(1, 9), tile, rng.randint(1, 70), rng.randint(1, 300)))


def random_buffers(seed: int, count: int) -> list[tuple[str, Shape]]:
    """Every dtype with one to four dimensions, in turn."""
    rng, buffers = random.Random(seed), list[tuple[str, Shape]]()
    while len(buffers) < count:
        dtype = list(BITS)[len(buffers) % len(BITS)]
        shape = tuple(random_size(rng) for _ in range(len(buffers) // len(BITS) % 4 + 1))
        if len(shape) == 1:
            shape = (shape[0] * rng.choice((1, 7, 99)),)
        if vmem_bytes(shape, BITS[dtype]) <= LARGEST:
            buffers.append((dtype, shape))
    return buffers


def differences(topology: str, buffers: list[tuple[str, Shape]], scalars: list[Shape], folder: Path) -> list[str]:
    """Compile one kernel with all the buffers: what the compiler gives those of which we say something else."""
    source = (KERNELS / "buffers.py").read_text()
    source = source.replace('VMEM = (("float32", (8, 128)),)', f"VMEM = {tuple(buffers)!r}")
    source = source.replace("SMEM = ((5,),)", f"SMEM = {tuple(scalars)!r}")
    path = folder / "kernel.py"
    path.write_text(source)
    allocations = [a for a in compile_kernel(path, topology).allocations if a.kind == "scratch"]
    wanted = [("vmem", dtype, shape, vmem_bytes(shape, BITS[dtype])) for dtype, shape in buffers]
    wanted += [("smem", "int32", shape, smem_bytes(shape)) for shape in scalars]
    found = [a for a in allocations if a.space in ("vmem", "smem")]
    assert [a.space for a in found] == [space for space, *_ in wanted], "a buffer was dropped"
    return [
        f"{space} {dtype}{list(shape)}: {ours} bytes are predicted, the compiler takes {a.bytes}: {a.shape}"
        for a, (space, dtype, shape, ours) in zip(found, wanted, strict=True)
        if a.bytes != ours
    ]


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("float32", (5,), 512),
        ("bfloat16", (257,), 2 * 512),
        ("int4", (5000,), 5 * 1024),
        ("float32", (3, 5), 4 * 128 * 4),
        ("bfloat16", (1, 129), 2 * 256 * 2),
        ("bfloat16", (5, 7), 8 * 128 * 2),
        ("bfloat16", (24, 128), 24 * 128 * 2),
        ("int8", (3, 100, 200), 3 * 104 * 256),
        ("int8", (2, 1), 4 * 128),
        ("int4", (40, 130), 40 * 256),
        ("int4", (3, 3), 8 * 128),
        ("uint32", (2, 3, 9, 1), 6 * 16 * 128 * 4),
    ],
)
def test_a_buffer_is_padded_to_whole_tiles(dtype: str, shape: Shape, size: int) -> None:
    assert vmem_bytes(shape, BITS[dtype]) == size


@pytest.mark.kernel
def test_predicted_bytes_are_the_compilers_on_tpu7x(tmp_path: Path) -> None:
    scalars: list[Shape] = [(1,), (129,), (1000,), (3, 5), (9, 129), (2, 3, 5)]
    assert differences("tpu7x:2x2x1", random_buffers(seed=1, count=40), scalars, tmp_path) == []


@pytest.mark.slow
@pytest.mark.kernel
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("chip", ["tpu7x", "v6e", "v5e"])
def test_predicted_bytes_of_210_random_buffers_are_the_compilers_on_every_chip(
    chip: str, part: int, tmp_path: Path
) -> None:
    buffers = random_buffers(seed=7, count=210)[70 * part : 70 * (part + 1)]
    rng = random.Random(part)
    scalars = [tuple(random_size(rng) for _ in range(rank)) for rank in (1, 1, 2)]
    assert differences(parse_target(chip).topology_name, buffers, scalars, tmp_path) == []

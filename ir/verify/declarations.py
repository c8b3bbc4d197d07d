"""What can be checked of the declarations alone: names, addresses, and the chip's capacity."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.program import ROW_BYTES, Program
from schedc.ir.verify.limits import Limits
from schedc.ir.verify.verdict import Refusal


def check_declarations(program: Program, limits: Limits) -> list[Refusal]:
    return [*_unique(program), *_addresses(program), *_capacity(program, limits)]


def _unique(program: Program) -> Iterator[Refusal]:
    storage = [*(buffer.name for buffer in program.buffers), *(array.name for array in program.arrays)]
    for names in (
        [pool.name for pool in program.pools],
        storage,
        [scalars.name for scalars in program.scalars],
        [semaphore.name for semaphore in program.semaphores],
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Refusal("duplicate-name", f"{name} is declared twice", "rename one of the two", storage=name)


def _addresses(program: Program) -> Iterator[Refusal]:
    pools = {pool.name: pool for pool in program.pools}
    for buffer in program.buffers:
        name = buffer.name
        if buffer.pool not in pools:
            yield Refusal("undeclared", f"buffer {name} is in pool {buffer.pool}, which is not declared",
                          f"declare pool {buffer.pool}", storage=name)  # fmt: skip
        elif buffer.address is not None:
            end = buffer.address + buffer.slots * buffer.rows
            if buffer.address < 0 or end > pools[buffer.pool].rows:
                yield Refusal(
                    "out-of-range",
                    f"buffer {name} takes rows {buffer.address}..{end - 1} of pool {buffer.pool}, "
                    f"which has {pools[buffer.pool].rows}",
                    f"give pool {buffer.pool} at least {end} rows",
                    storage=name,
                )
            if buffer.address % max(buffer.align, 1):
                yield Refusal(
                    "misaligned",
                    f"buffer {name} is at row {buffer.address} of pool {buffer.pool}, not a multiple of {buffer.align}",
                    f"move it to row {-(-buffer.address // buffer.align) * buffer.align}",
                    storage=name,
                )


def _capacity(program: Program, limits: Limits) -> Iterator[Refusal]:
    sizes = {pool.name: limits.pool_bytes(pool.rows) for pool in program.pools}
    vmem = sum(sizes.values()) + limits.scratch_bytes
    if vmem > limits.vmem_bytes:
        parts = [f"{name} {size}" for name, size in sizes.items()]
        parts += [f"scratch {limits.scratch_bytes}"] if limits.scratch_bytes else []
        yield Refusal(
            "capacity",
            f"VMEM needs {vmem} bytes ({' + '.join(parts)}) of {limits.vmem_bytes}, "
            f"{vmem - limits.vmem_bytes} too many",
            f"take {-(-(vmem - limits.vmem_bytes) // ROW_BYTES)} rows out of the pools",
            storage=max(sizes, key=lambda name: sizes[name], default=""),
        )
    granule = limits.smem_granule
    smem = sum(-(-scalars.length * 4 // granule) * granule for scalars in program.scalars)
    if smem > limits.smem_bytes:
        longest = max(program.scalars, key=lambda scalars: scalars.length)
        yield Refusal(
            "capacity",
            f"SMEM needs {smem} bytes of {limits.smem_bytes}, {smem - limits.smem_bytes} too many",
            f"shorten the scalar arrays; {longest.name} is the longest",
            storage=longest.name,
        )
    declared = sum(semaphore.count for semaphore in program.semaphores)
    added = limits.added_semaphores(program)
    if declared + added > limits.semaphores:
        most = max(program.semaphores, key=lambda semaphore: semaphore.count, default=None)
        needed = f"{declared} semaphores are declared"
        if added:
            needed = f"{declared + added} semaphores are needed ({declared} declared + {added} of the kernel's own)"
        yield Refusal(
            "capacity",
            f"{needed}, the chip has {limits.semaphores}",
            f"share {declared + added - limits.semaphores} of them" + (f"; most are of {most.name}" if most else ""),
            storage=most.name if most else "",
        )

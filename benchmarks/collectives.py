"""Issue cycles of the collectives, by the TPU compiler: `python benchmarks/collectives.py tpu7x:2x2x1 [algorithm …]`.

One line for every algorithm, wire and size of an all-reduce over all devices of the topology: what one occurrence adds
to a kernel that has none, and the VMEM that it takes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.emit.kernel import emit
from schedc.ir.allocate import allocate
from schedc.ir.expr import Const
from schedc.ir.program import (
    ROW_BYTES,
    Array,
    Barrier,
    Buffer,
    Op,
    Pool,
    Program,
    Region,
    Semaphore,
    SemaphoreRef,
    Start,
    Wait,
)
from schedc.lower.collectives.group import Group, topology_of
from schedc.lower.collectives.protocol import Collective, Exchanged, complete
from schedc.lower.collectives.registry import ALGORITHMS, make_collective
from schedc.lower.parts import WORK, compute
from schedc.target.target import Target, parse_target
from schedc.weights.layout import WordDtype

SIZES = ((8, 2048), (8, 4096), (8, 8192), (16, 7168))
"""Rows and columns of the activations."""
WIRES: tuple[WordDtype, ...] = ("bf16", "f32")


def copied(source: Region, target: Region) -> tuple[Op, ...]:
    return Start(source, target, SemaphoreRef("done")), Wait(SemaphoreRef("done"), source.rows)


def program(rows: int, devices: int, collective: Collective | None) -> Program:
    state = Region("state", rows)
    occurrence: tuple[Op, ...] = ()
    if collective is not None:
        occurrence = (*collective.start(state, Const(0)), *complete(collective, state, Const(0)))
    declared = collective.declarations() if collective is not None else None
    cleared = [compute("zero", writes={"out": region}) for region in declared.cleared] if declared else []
    buffers = (Buffer("state", WORK, rows), *(declared.buffers if declared else ()))
    made = Program(
        "collective",
        tuple(Pool(name) for name in dict.fromkeys(buffer.pool for buffer in buffers)),
        buffers,
        (Array("given", rows, "input"), Array("left", rows, "output")),
        (),
        (*(declared.semaphores if declared else ()), Semaphore("done")),
        (*cleared, Barrier(), *copied(Region("given", rows), state), *occurrence, *copied(state, Region("left", rows))),
        devices,
        (("vmem_limit_bytes", 1 << 26),),
    )
    return allocate(made, 1 << 17)


def cycles(made: Program, target: Target) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(emit(made).source)
        report = compile_kernel(path, target.topology_name, made.devices)
    assert report.cycles is not None
    return report.cycles.total


def collective_of(algorithm: str, wire: WordDtype, height: int, target: Target) -> Collective:
    """An all-reduce over all devices of the target."""
    group = Group(target.devices, target.devices)
    return make_collective(algorithm, Exchanged("sums", "all_reduce", group, topology_of(target), height, wire))


def all_reduces(target: Target) -> Iterator[Program]:
    """A program for every algorithm, wire and size."""
    for (rows, columns), algorithm, wire in product(SIZES, ALGORITHMS, WIRES):
        height = rows * columns // 128
        yield program(height, target.devices, collective_of(algorithm, wire, height, target))


def main(name: str, *algorithms: str) -> None:
    target = parse_target(name)
    print(f"{'algorithm':14} {'wire':5} {'size':>10} {'cycles':>7} {'VMEM KiB':>9}")
    for rows, columns in SIZES:
        height = rows * columns // 128
        base = cycles(program(height, target.devices, None), target)
        for algorithm, wire in product(algorithms or tuple(ALGORITHMS), WIRES):
            collective = collective_of(algorithm, wire, height, target)
            took = cycles(program(height, target.devices, collective), target) - base
            words = sum(buffer.rows * buffer.slots for buffer in collective.declarations().buffers)
            size = words * ROW_BYTES // 1024
            print(f"{algorithm:14} {wire:5} {f'{rows}x{columns}':>10} {took:7} {size:9}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

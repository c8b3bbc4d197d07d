"""The TPU compiler's cycles of a kernel, attributed to the operations of its program."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from schedc import cache
from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.process import Progress
from schedc.backends.pallas.aot.report import CompileReport
from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.copies import traced_operations
from schedc.compiler.step_cycles import step_cycles
from schedc.cost.operations import CycleTable
from schedc.cost.profile import Profile, profile_of
from schedc.ir.program import BLOCKS, Compute, Op, Phase, Program, numbered, walk
from schedc.ir.text_print import print_program
from schedc.target.target import Target


def compile_profile(
    program: Program, target: Target, timeout: float = 600, progress: Progress | None = None
) -> Profile:
    """Of a program with addresses, which need not be proven. Raises CompileFailed if the TPU compiler refuses it."""
    kernel = emit(program)
    with TemporaryDirectory(prefix="schedc-profile-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(kernel.source, encoding="utf-8")
        made = compile_kernel(
            path, target.topology_name, target.devices_used, timeout=timeout, progress=progress, store=cache.active()
        )
    return profile_kernel(program, kernel, made, target)


def profile_kernel(program: Program, kernel: Kernel, made: CompileReport, target: Target) -> Profile:
    """Cycles of one execution of every operation.

    An operation has the bundles of its source lines. Where it is unrolled, they are those of all copies, and each
    execution gets its share. What stands on a loop's own line is the end of its body, so a trip has it. Loops inside
    of a computation are bundles once; the rest of their trips is what the cost model says. Bundles before and after
    all operations, where the kernel is entered and left, go to the first operation that stands in no loop.
    """
    operations = list(walk(program.body))
    copies = Counter(number for number, _ in traced_operations(program))
    first = [line for line, _ in kernel.operations]
    bundles, outside = [0] * len(operations), 0
    for line, amount in made.line_cycles.items():
        at = bisect_right(first, line) - 1
        if at < 0:
            outside += amount
        else:
            bundles[at] += amount
    bundles[_first_once(program.body) or 0] += outside
    table = CycleTable.on(target)
    cycles = [
        round(amount / max(1, copies[number]) + (table.inner_cycles(op) if isinstance(op, Compute) else 0.0), 3)
        for number, (op, amount) in enumerate(zip(operations, bundles, strict=True))
    ]
    digest = sha256(print_program(program).encode()).hexdigest()
    phases = step_cycles(program, kernel, made, table)
    return profile_of(program, target.chip.compiler_name, asdict(made.versions), cycles, digest, phases)


def _first_once(ops: tuple[Op, ...], at: int = 0) -> int | None:
    """The number of the first operation that is no block and stands in no loop or branch; `ops` begin at `at`."""
    for number, op in numbered(ops, at):
        if isinstance(op, Phase):
            found = _first_once(op.body, number + 1)
            if found is not None:
                return found
        elif not isinstance(op, BLOCKS):
            return number
    return None

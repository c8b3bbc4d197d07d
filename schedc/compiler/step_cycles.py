"""Issue cycles of a whole step, as the TPU compiler scheduled it: bundles of every line, as often as it is executed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from schedc.backends.pallas.aot.report import CompileReport
from schedc.backends.pallas.emit.kernel import Kernel
from schedc.cost.executions import executions
from schedc.cost.operations import CycleTable
from schedc.ir.placed import placed
from schedc.ir.program import Compute, Program

OUTSIDE = "(outside)"
"""What is in no phase: the beginning and the end of the kernel, the edges of loops over layers."""


def step_cycles(
    program: Program,
    kernel: Kernel,
    made: CompileReport,
    table: CycleTable,
    inputs: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, int]:
    """Cycles by phase, in program order, with the scalars of `executions`; of a wait its own bundles alone.

    What stands on a loop's own line is the end of its body, and counts as often. Loops inside of a computation are
    bundles once, and the rest of their trips is what the cost model says.
    """
    operations = [(place.op, place.phase or OUTSIDE) for place in placed(program.body)]
    counts = executions(program, inputs)
    first = [line for line, _ in kernel.operations]
    cycles = dict.fromkeys((OUTSIDE, *(phase for _, phase in operations)), 0.0)
    for line, amount in made.line_cycles.items():
        at = bisect_right(first, line) - 1
        phase, times = (operations[at][1], counts[at]) if at >= 0 else (OUTSIDE, 1)
        cycles[phase] += amount * times
    for (op, phase), times in zip(operations, counts, strict=True):
        if isinstance(op, Compute):
            cycles[phase] += table.inner_cycles(op) * times
    return {phase: round(amount) for phase, amount in cycles.items()}

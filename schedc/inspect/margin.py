"""The generated source with, beside every line, its phase, the compiler's issue cycles and the predicted time.

The cycles are those of the folder's profile: bundles of the final schedule by source line, for one execution, so the
times of the same lines add up to the prediction that is charged with them. A computation that stands on several lines
has its figures on the first.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from schedc.backends.pallas.emit.kernel import emit
from schedc.backends.pallas.errors import EmitError
from schedc.compiler.output import KERNEL, read_output_file
from schedc.cost.timeline import PhaseTime
from schedc.errors import UserError
from schedc.inspect.execution import Executed, execute
from schedc.inspect.numbered import Numbered
from schedc.inspect.subject import Subject
from schedc.ir.program import BLOCKS, Phase


@dataclass(frozen=True)
class Line:
    """`cycles` of one execution, `times` executions a step, `time_us` of all of them with waits; None: no operation.

    Loops and guards have cycles alone: their time is counted in the phase.

    Of a phase's heading, cycles and time are those of the whole phase, over all its executions.
    """

    number: int
    text: str
    phase: str = ""
    cycles: float | None = None
    times: int | None = None
    time_us: float | None = None
    stall_us: float | None = None
    heading: bool = False


@dataclass(frozen=True)
class Margin:
    """`priced_by` says whose cycles they are, `phases` are in program order."""

    lines: tuple[Line, ...]
    priced_by: str
    step_us: float
    phases: tuple[str, ...]

    def of_phase(self, name: str) -> Margin:
        """Only its lines. Raises UserError that names the phases."""
        if name not in self.phases:
            raise UserError(f"there is no phase {name!r}; there are {', '.join(self.phases)}")
        lines = tuple(line for line in self.lines if line.phase == name)
        return Margin(lines, self.priced_by, self.step_us, self.phases)


def margin(subject: Subject) -> Margin:
    """Raises UserError if the folder's kernel.py is not that of its program.ir."""
    program, machine = subject.program, subject.priced
    try:
        kernel = emit(program)
    except EmitError as error:
        raise UserError(f"{program.name}: no kernel can be emitted: {error}") from None
    source = kernel.source if subject.folder is None else read_output_file(subject.folder / KERNEL)
    if source != kernel.source:
        raise UserError(f"{subject.folder}: kernel.py is not the kernel of program.ir; compile again")
    numbered = Numbered(program)
    timeline, executed = execute(program, machine)
    figures = _by_operation(executed)
    prices = machine.priced(program).cycles
    totals = {phase.name: phase for phase in timeline.phases}
    starts = [line for line, _ in kernel.operations]
    found: dict[int, Line] = {}
    for number, (line, op) in enumerate(kernel.operations):
        phase = numbered.ops[number].phase
        if isinstance(op, Phase):
            found[line] = _heading(line, op.name, totals[op.name])
        elif number in figures or not isinstance(op, BLOCKS):
            times, time, stall = figures.get(number, (0, 0.0, 0.0))
            found[line] = Line(line, "", phase, prices[number], times, time, stall)
        else:
            found.setdefault(line, Line(line, "", phase, prices[number] or None))
    lines, phase, last = [], "", starts[-1] if starts else 0
    for number, text in enumerate(source.splitlines(), start=1):
        if number in found:
            phase = found[number].phase
        elif number > last and not text.strip():
            phase = ""
        lines.append(replace(found.get(number) or Line(number, "", phase), text=text))
    names = tuple(dict.fromkeys(placed.phase for placed in numbered.ops if placed.phase))
    return Margin(tuple(lines), timeline.priced_by, round(timeline.step_ns / 1e3, 3), names)


def _heading(line: int, name: str, total: PhaseTime) -> Line:
    time, stall = round(total.time_ns / 1e3, 3), round(total.stall_ns / 1e3, 3)
    return Line(line, "", name, round(total.cycles, 1), total.executions, time, stall, heading=True)


def _by_operation(executed: list[Executed]) -> dict[int, tuple[int, float, float]]:
    """By operation: executions, µs, and µs blocked in it."""
    found: dict[int, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for done in executed:
        of_op = found[done.op]
        of_op[0] += 1
        of_op[1] += done.ended_ns - done.began_ns
        of_op[2] += done.stall_ns
    return {op: (int(times), round(ns / 1e3, 3), round(stall / 1e3, 3)) for op, (times, ns, stall) in found.items()}

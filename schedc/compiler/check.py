"""Compile the kernel with the real TPU compiler and hold what it made against the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from schedc import cache
from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.failure import CompileFailed
from schedc.backends.pallas.aot.process import Progress
from schedc.backends.pallas.aot.report import AllocationKind, CompileReport
from schedc.backends.pallas.aot.transfers import Expected, check_order
from schedc.backends.pallas.emit.kernel import Kernel
from schedc.backends.pallas.emit.steps import can_feed_back
from schedc.backends.pallas.memory import pool_bytes
from schedc.compiler.copies import traced_operations
from schedc.compiler.pipeline import Compiled
from schedc.compiler.profile import profile_kernel
from schedc.cost.operations import CycleTable
from schedc.cost.prices import table_price
from schedc.cost.profile import Profile
from schedc.errors import CheckFailed, UserError
from schedc.ir.program import (
    Phase,
    Program,
    RemoteStart,
    Start,
    walk,
)
from schedc.ir.text_print import print_op
from schedc.target.target import Target

LARGE_COPY_BYTES = 2**20
"""A copy of this size beside the kernel means that XLA moves a weight or a cache in every step."""


@dataclass(frozen=True)
class CheckReport:
    """What the TPU compiler made of the kernel, and every way in which it differs from the program."""

    versions: Mapping[str, str]
    lower_seconds: float
    compile_seconds: float
    code_bytes: int
    vmem_bytes: Mapping[str, int]
    """By kind: `scratch` are the pools, `internal` the compiler's own, `spill` registers, `window` and `other`."""
    program_vmem_bytes: int
    vmem_limit_bytes: int
    issue_cycles: int
    """Bundles of the whole schedule, stalls included, every loop body once."""
    predicted_cycles: int
    """Ours for the same: all operations of the program, every loop body once."""
    phase_cycles: Mapping[str, int]
    transfers: int
    steps_per_call: int
    temp_bytes: int
    """What XLA keeps beside the kernel, in HBM."""
    problems: tuple[str, ...]
    profile: Profile
    """The compiler's cycles of every operation."""

    def to_dict(self) -> dict[str, Any]:
        """All but the profile, which has a file of its own."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "profile"}

    def lines(self) -> list[tuple[str, str]]:
        """(label, value) for a person."""
        extra = ", ".join(f"{kind} {size:,}" for kind, size in self.vmem_bytes.items() if size and kind != "scratch")
        total = sum(self.vmem_bytes.values())
        several = self.steps_per_call > 1
        return [
            ("compiler", f"jax {self.versions['jax']}, libtpu {self.versions['libtpu']}"),
            ("compiled in", f"{self.lower_seconds:.1f} s to lower, {self.compile_seconds:.1f} s to compile"),
            ("code", f"{self.code_bytes:,} bytes"),
            (
                "VMEM",
                f"{total:,} of {self.vmem_limit_bytes:,} bytes: pools {self.vmem_bytes['scratch']:,}"
                f" (ours {self.program_vmem_bytes:,}){', ' if extra else ''}{extra}",
            ),
            ("issue cycles", f"{self.issue_cycles:,} (ours {self.predicted_cycles:,}), every loop body once"),
            ("transfers", f"{self.transfers} starts, in the program's order"),
            *([("steps a call", f"{self.steps_per_call}, with {self.temp_bytes:,} bytes beside the kernel")] * several),
        ]


def check(
    compiled: Compiled, kernel_path: Path, timeout: float = 600, progress: Progress | None = None, steps: int = 1
) -> CheckReport:
    """With `steps` a call. Raises CheckFailed, at the operation of the program, if the compiler refuses the kernel."""
    program, target = compiled.program, compiled.request.target
    return check_kernel(program, compiled.kernel, target, kernel_path, timeout, progress, steps)


def check_kernel(
    program: Program,
    kernel: Kernel,
    target: Target,
    kernel_path: Path,
    timeout: float = 600,
    progress: Progress | None = None,
    steps: int = 1,
) -> CheckReport:
    """The same for a program that no model was compiled to. Raises UserError for steps that do not feed each other."""
    if steps > 1 and not can_feed_back(program):
        raise UserError(f"{steps} steps a call: ids of a step of {program.name} are no tokens of a next one; use 1")
    try:
        made = compile_kernel(
            kernel_path,
            target.topology_name,
            target.devices_used,
            steps=steps,
            timeout=timeout,
            progress=progress,
            store=cache.active(),
        )
    except CompileFailed as error:
        raise CheckFailed(_located(error, kernel)) from None
    kinds: tuple[AllocationKind, ...] = ("scratch", "internal", "spill", "window", "other")
    vmem: dict[str, int] = {kind: made.vmem_bytes(kind) for kind in kinds}
    ours = sum(pool_bytes(pool.rows) for pool in program.pools)
    limit = target.capability.vmem_usable_bytes
    wanted = list(expected_transfers(program, kernel))
    # Of several steps the outputs of one are kept before they are put beside those of the others.
    spare = (steps > 1) * sum(pool_bytes(array.rows) for array in program.arrays if array.role == "output")
    return CheckReport(
        versions=asdict(made.versions),
        lower_seconds=round(made.seconds.lower, 2),
        compile_seconds=round(made.seconds.compile, 2),
        code_bytes=made.code_bytes,
        vmem_bytes=vmem,
        program_vmem_bytes=ours,
        vmem_limit_bytes=limit,
        issue_cycles=made.cycles.total if made.cycles else 0,
        predicted_cycles=round(predicted_cycles(program, CycleTable.on(target))),
        phase_cycles=phase_cycles(program, kernel, made),
        transfers=len(wanted),
        steps_per_call=steps,
        temp_bytes=made.temp_bytes,
        problems=(*_memory_problems(vmem, ours, limit, made, spare), *check_order(made, wanted)),
        profile=profile_kernel(program, kernel, made, target),
    )


def require_agreement(checked: CheckReport) -> None:
    """Raises CheckFailed if there are problems."""
    if checked.problems:
        lines = ["the compiled kernel is not what the program says:", *(f"  {problem}" for problem in checked.problems)]
        raise CheckFailed("\n".join(lines), problems=checked.problems, details={"compiler": checked.to_dict()})


def _memory_problems(vmem: Mapping[str, int], ours: int, limit: int, made: CompileReport, spare: int) -> Iterator[str]:
    """`spare` are bytes that XLA may take beside the kernel."""
    if vmem["scratch"] != ours:
        yield f"the compiler allocates {vmem['scratch']} bytes for the pools, the program {ours}"
    # Its internal scratch is listed in every kernel, but takes nothing where nothing uses it.
    taken = sum(vmem.values()) - vmem["internal"]
    if taken > limit:
        yield f"VMEM of {taken} bytes with spills is over the limit of {limit}"
    for copy in made.copies_of(LARGE_COPY_BYTES):
        yield f"XLA copies {copy.bytes} bytes beside the kernel in every step: {copy.name}, {copy.result}"
    if made.temp_bytes > LARGE_COPY_BYTES + spare:
        yield f"XLA takes {made.temp_bytes} bytes of temporaries beside the kernel"


def _located(error: CompileFailed, kernel: Kernel) -> str:
    """The compiler's refusal at the operation of the program that its line comes from."""
    failure = error.failure
    message = f"the TPU compiler refuses the kernel ({failure.stage}): {failure.reason}"
    for line in failure.lines:
        operations = [op for first, op in kernel.operations if first <= line]
        if operations:
            op = operations[-1]
            return f"{message}\n  at kernel.py line {line}: {print_op(op).removesuffix(' {')}"
    return message


def expected_transfers(program: Program, kernel: Kernel) -> Iterator[Expected]:
    """(line, rows, direction) of every start as the compiler sees it: loops once, unrolled loops copy by copy."""
    arrays = {array.name for array in program.arrays}
    lines = {id(op): line for line, op in kernel.operations}
    for _, op in traced_operations(program):
        match op:
            case Start(source, target):
                direction = "vmem_to_hbm" if target.storage in arrays else "hbm_to_vmem"
                yield lines[id(op)], source.rows, direction
            case RemoteStart(source):
                yield lines[id(op)], source.rows, "general"


def predicted_cycles(program: Program, table: CycleTable) -> float:
    """Issue cycles of all operations, every loop body once and unrolled loops copy by copy."""
    return sum(table_price(op, table, program.devices)[0] for _, op in traced_operations(program))


def phase_cycles(program: Program, kernel: Kernel, made: CompileReport) -> dict[str, int]:
    """The compiler's issue cycles by phase, every loop body once."""
    starts = [(line, op.name) for line, op in kernel.operations if isinstance(op, Phase)]
    cycles = {op.name: 0 for op in walk(program.body) if isinstance(op, Phase)}
    first_line = starts[0][0] if starts else 0
    for line, amount in made.line_cycles.items():
        if line >= first_line and starts:
            name = [name for start, name in starts if start <= line][-1]
            cycles[name] += amount
    return cycles

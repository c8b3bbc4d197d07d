"""The last program that fits is accepted by the proof and by the TPU compiler; one more is refused by both."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.failure import CompileFailed
from schedc.backends.pallas.emit.kernel import emit
from schedc.backends.pallas.memory import added_semaphores, pool_bytes, smem_bytes
from schedc.compiler.pipeline import limits_of
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import verify
from schedc.target.chip import Capability
from schedc.target.target import Target, parse_target

pytestmark = pytest.mark.kernel

CHIPS = ["tpu7x", pytest.param("v6e", marks=pytest.mark.slow), pytest.param("v5e", marks=pytest.mark.slow)]
ROW = 512  # Bytes of a pool row.
FETCHED = 2  # Inputs of more than one word: the compiler takes 1 + 2 // 2 semaphores for them.
SPARE = 1  # Semaphores that libtpu 0.0.42 has more than 0.0.50, and 0.0.50 where devices meet at a barrier.


def text(vmem_limit: int, rows: int, words: int, semaphores: int) -> str:
    """A program that uses the end of everything it declares: so many pool rows, words of SMEM, semaphores in all."""
    return f"""\
program edge {{
  attribute vmem_limit_bytes = {vmem_limit}
  pool work rows={rows}
  buffer tile in work rows=8 slots=1 align=1 at {rows - 8}
  hbm x rows=8 input
  hbm y rows=8 output
  smem few[5] in 0..0 input
  smem more[129] in 0..0 input
  smem many[{words}] in 0..0 local
  semaphore arrived[1] dma
  semaphore told[3] regular
  semaphore moved[{semaphores - 4}] dma
  set many[{words - 1}] = 0
  start x[few[4] +: 8] -> tile[0 +: 8] signals arrived
  wait arrived rows=8
  start x[more[128] + many[{words - 1}] +: 8] -> tile[0 +: 8] signals moved[{semaphores - 5}]
  wait moved[{semaphores - 5}] rows=8
  signal told[2] amount=1
  await told[2] amount=1
  start tile[0 +: 8] -> y[0 +: 8] signals arrived
  wait arrived rows=8
}}
"""


def program(capability: Capability, rows: int = 0, words: int = 0, semaphores: int = 0) -> Program:
    """The largest that fits, with so many rows, words and semaphores more than that."""
    inputs = sum(smem_bytes((length,)) for length in (5, 129))
    usable = capability.vmem_usable_bytes
    return parse_program(
        text(
            usable,
            usable // ROW + rows,
            (capability.smem_usable_bytes - inputs) // 4 + words,
            capability.semaphores - 1 - FETCHED // 2 + semaphores,
        )
    )


def compile_on(target: Target, program: Program, folder: Path) -> None:
    path = folder / "kernel.py"
    path.write_text(emit(program).source)
    compile_kernel(path, target.topology_name, target.devices_used, dump=False, timeout=120)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_program_that_fills_vmem_smem_and_semaphores_is_proven_and_compiles(chip: str, tmp_path: Path) -> None:
    target = parse_target(chip)
    full = program(target.capability)
    assert verify(full, limits_of(target)).refusals == ()
    compile_on(target, full, tmp_path)


MORE = {
    "rows": (r"VMEM needs {vmem_more} bytes \(work {vmem_more}\) of {vmem}, 4096 too many", "vmem"),
    "words": (r"SMEM needs {smem_more} bytes of {smem}, 512 too many", "smem"),
    "semaphores": (
        r"{semaphores_more} semaphores are needed \({declared} declared \+ 2 of the kernel's own\), "
        r"the chip has {semaphores}",
        "sflag",
    ),
}


@pytest.mark.parametrize("what", MORE)
@pytest.mark.parametrize("chip", CHIPS)
def test_one_row_word_or_semaphore_more_is_refused_with_the_numbers_and_does_not_compile(
    chip: str, what: str, tmp_path: Path
) -> None:
    target = parse_target(chip)
    capability = target.capability
    message, space = MORE[what]
    over = program(capability, **{what: 1})
    (refusal,) = verify(over, limits_of(target)).refusals
    assert refusal.rule == "capacity"
    numbers = {
        "vmem": capability.vmem_usable_bytes,
        "vmem_more": capability.vmem_usable_bytes + 8 * ROW,
        "smem": capability.smem_usable_bytes,
        "smem_more": capability.smem_usable_bytes + 512,
        "semaphores": capability.semaphores,
        "semaphores_more": capability.semaphores + 1,
        "declared": capability.semaphores - 1,
    }
    assert re.search(message.format(**numbers), str(refusal))
    with pytest.raises(CompileFailed, match=rf"(?i)in memory space {space}\.|{space} exhausted"):
        compile_on(target, program(capability, **{what: 1 + SPARE if what == "semaphores" else 1}), tmp_path)


def test_a_pool_is_padded_to_tiles_of_eight_rows() -> None:
    assert [pool_bytes(rows) // ROW for rows in (1, 3, 8, 9, 130_937)] == [1, 4, 8, 16, 130_944]


DEVICES = """\
program devices {
  devices 4
  pool work rows=8
  buffer tile in work rows=8 slots=1 align=8 at 0
  hbm x rows=8 input
  hbm y rows=8 output
  smem few[5] in 0..0 input
  semaphore arrived[1] dma
  semaphore moved[MOVED] dma
  barrier
  start x[few[4] +: 8] -> tile[0 +: 8] signals moved[LAST]
  wait moved[LAST] rows=8
  barrier
  start tile[0 +: 8] -> y[0 +: 8] signals arrived
  wait arrived rows=8
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1 + SPARE])
@pytest.mark.parametrize("chip", ["tpu7x", "v6e", "v5e"])
def test_barriers_and_inputs_take_semaphores_of_their_own(chip: str, more: int, tmp_path: Path) -> None:
    target = parse_target(chip, devices=4)
    one = parse_program(DEVICES.replace("LAST", "0").replace("MOVED", "1"))
    moved = target.capability.semaphores - 1 - added_semaphores(one) + more
    made = parse_program(DEVICES.replace("LAST", str(moved - 1)).replace("MOVED", str(moved)))
    made = replace(made, attributes=(("vmem_limit_bytes", target.capability.vmem_usable_bytes),))
    rules = {refusal.rule for refusal in verify(made, limits_of(target)).refusals}
    assert rules == ({"capacity"} if more else set())
    if more:
        with pytest.raises(CompileFailed, match="in memory space sflag"):
            compile_on(target, made, tmp_path)
    else:
        compile_on(target, made, tmp_path)


MIXED = """\
program mixed {
  pool work rows=8
  buffer tile in work rows=8 slots=1 align=8 at 0
  hbm x rows=8 input
  hbm y rows=8 output
  INPUTS
  smem one[1] in 0..0 input
  semaphore arrived[1] dma
  semaphore moved[MOVED] dma
  start x[SUM +: 8] -> tile[0 +: 8] signals moved[LAST]
  wait moved[LAST] rows=8
  start tile[0 +: 8] -> y[0 +: 8] signals arrived
  wait arrived rows=8
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("several", [1, 2, 4])
@pytest.mark.parametrize("chip", ["tpu7x", "v6e", "v5e"])
def test_inputs_of_one_word_and_of_several_in_one_kernel_fit_as_counted(
    chip: str, several: int, tmp_path: Path
) -> None:
    target = parse_target(chip)
    limits, capability = limits_of(target), target.capability
    inputs = "\n".join(f"smem s{number}[4] in 0..0 input" for number in range(several))
    total = " + ".join([*(f"s{number}[0]" for number in range(several)), "one[0]"])
    source = MIXED.replace("INPUTS", inputs).replace("SUM", total)
    one = parse_program(source.replace("LAST", "0").replace("MOVED", "1"))
    moved = capability.semaphores - 1 - limits.added_semaphores(one)
    made = parse_program(source.replace("LAST", str(moved - 1)).replace("MOVED", str(moved)))
    made = replace(made, attributes=(("vmem_limit_bytes", capability.vmem_usable_bytes),))
    assert verify(made, limits).refusals == ()
    compile_on(target, made, tmp_path)

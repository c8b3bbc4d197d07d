"""Every rule of the proof, with its exact message: in rules.txt and, for two devices, rules_devices.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 20, smem_bytes=2048, semaphores=8, scratch_bytes=1024, smem_granule=512)
DECLARATIONS = """program p {
  pool work rows=64
  buffer a in work rows=8 slots=2 align=8 at 0
  buffer b in work rows=8 slots=1 align=8 at 16
  buffer c in work rows=8 slots=1 align=8 at 16
  hbm w rows=64 weight
  hbm kv rows=64 state
  hbm out rows=8 output
  smem pos[2] in 0..31 input
  smem on[2] in 0..1 input
  smem full[2] in 0..7 local
  semaphore s[2] dma
  semaphore g[1] regular
"""


TWO_DEVICES = """program p {
  devices 2
  pool work rows=64
  buffer inbox in work rows=8 slots=2 align=8 at 0
  buffer x in work rows=8 slots=1 align=8 at 16
  smem pos[2] in 0..31 input
  smem on[2] in 0..1 input
  smem mine[1] in 0..31 local
  table kind = 0, 1, 1
  semaphore sent[2] dma
  semaphore arrived[2] dma
  semaphore g[1] regular
  barrier
  compute zero(out: write x[0 +: 8])
"""


def _cases(file: str, declarations: str) -> list[tuple[str, str, str]]:
    """(name, program, refusals)."""
    found = []
    for case in (Path(__file__).parent / file).read_text().split("\n## ")[1:]:
        name, *lines = case.splitlines()
        operations = "\n".join(line for line in lines if not line.startswith("=> "))
        messages = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        start = declarations.replace("  barrier\n", "") if name.startswith("no barrier") else declarations
        found.append((name, start + operations + "\n}\n", "\n".join(messages)))
    return found


CASES = _cases("rules.txt", DECLARATIONS) + _cases("rules_devices.txt", TWO_DEVICES)


@pytest.mark.parametrize(("name", "text", "messages"), CASES, ids=[case[0] for case in CASES])
def test_is_refused_with_this_message(name, text, messages):
    assert str(verify(parse_program(text), LIMITS)) == messages


def test_every_rule_has_a_case():
    rules = {line.removeprefix("=> ").split(":")[0] for *_, messages in CASES for line in messages.splitlines()}
    assert rules == {
        "bad-division",
        "bad-peer",
        "bad-xor",
        "clobbered",
        "deadlock",
        "guard-mismatch",
        "loop-edge",
        "malformed",
        "misaligned",
        "no-case",
        "operand-overlap",
        "out-of-range",
        "overwrite-while-read",
        "partial-wait-unproven",
        "peer-not-started",
        "read-before-write",
        "read-while-arriving",
        "scalar-range",
        "semaphore-left",
        "constant-written",
        "transfer-never-awaited",
        "undecided-communication",
        "undeclared",
        "unknown-semaphore",
        "wait-never-satisfied",
        "weight-written",
        "write-while-arriving",
    }


def test_declarations_are_held_against_the_chip():
    text = """program p {
      pool work rows=4096
      buffer a in work rows=8 slots=2 align=8 at 4
      buffer b in work rows=8 slots=1 align=8 at 4090
      buffer b in none rows=8 slots=1 align=8
      smem pos[513] in 0..1 input
      semaphore s[12] dma
    }"""
    assert str(verify(parse_program(text), LIMITS)).splitlines() == [
        "duplicate-name: b is declared twice. Repair: rename one of the two.",
        "misaligned: buffer a is at row 4 of pool work, not a multiple of 8. Repair: move it to row 8.",
        "out-of-range: buffer b takes rows 4090..4097 of pool work, which has 4096. "
        "Repair: give pool work at least 4098 rows.",
        "misaligned: buffer b is at row 4090 of pool work, not a multiple of 8. Repair: move it to row 4096.",
        "undeclared: buffer b is in pool none, which is not declared. Repair: declare pool none.",
        "capacity: VMEM needs 2098176 bytes (work 2097152 + scratch 1024) of 1048576, 1049600 too many. "
        "Repair: take 2050 rows out of the pools.",
        "capacity: SMEM needs 2560 bytes of 2048, 512 too many. Repair: shorten the scalar arrays; pos is the longest.",
        "capacity: 12 semaphores are declared, the chip has 8. Repair: share 4 of them; most are of s.",
    ]

"""Live ranges, each from a program and with the reason: what would be overwritten if the range were shorter."""

from __future__ import annotations

import pytest

from schedc.ir.allocate import allocate
from schedc.ir.live import live_ranges
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 20, smem_bytes=1 << 16, semaphores=64)
DECLARATIONS = """program p {
  pool v rows=0
  buffer b in v rows=32 slots=1 align=8
  buffer r in v rows=8 slots=2 align=8
  buffer t in v rows=8 slots=1 align=8
  hbm w rows=256 weight
  hbm out rows=32 output
  smem n[1] in 0..4 input
  smem f[1] in 0..4 local
  semaphore s[2] dma
"""

WRITE_T = "compute k(o: write t[0 +: 8])"
READ_T = "compute k(x: read t[0 +: 8])"
WRITE_B = "compute k(o: write b[0 +: 32])"
READ_B = "compute k(x: read b[0 +: 32])"
START_B = "start w[0 +: 32] -> b[0 +: 32] signals s"

# name: operations, and the first and last operation of each span of each buffer (closing braces do not count)
CASES = {
    "from the write to the last read": (
        [WRITE_B, WRITE_T, READ_B, READ_T, READ_T],
        {"b": (0, 2), "t": (1, 4)},
    ),
    "from the start of the transfer that writes it": (
        [START_B, WRITE_T, "wait s rows=32", READ_B],
        {"b": (0, 3), "t": (1, 1)},
    ),
    "until the wait of the transfer that reads it": (
        [WRITE_B, "start b[0 +: 32] -> out[0 +: 32] signals s", WRITE_T, "wait s rows=32", READ_T],
        {"b": (0, 3), "t": (2, 4)},
    ),
    "a temporary of an iteration needs no extension": (
        ["loop l < 4 {", WRITE_T, READ_T, WRITE_B, READ_B, "}"],
        {"b": (3, 4), "t": (1, 2)},
    ),
    "written before a loop and read in it: every iteration reads it": (
        [WRITE_B, "loop l < 4 {", WRITE_T, READ_B, READ_T, WRITE_T, READ_T, "}"],
        {"b": (0, 6), "t": (2, 6)},
    ),
    "written by an iteration for the next one": (
        [WRITE_B, "loop l < 4 {", READ_B, WRITE_T, READ_T, WRITE_B, "}"],
        {"b": (0, 2, 5, 5), "t": (3, 4)},
    ),
    "updated in every iteration": (
        [WRITE_B, "loop l < 4 {", WRITE_T, "compute k(x: read t[0 +: 8], o: update b[8 +: 8])", "}", READ_B],
        {"b": (0, 4), "t": (2, 3)},
    ),
    "rotating slots hold what the next iteration reads": (
        ["compute k(o: write r[0 +: 8])", "loop l < 4 {", WRITE_T, "compute k(x: read t[0 +: 8], "
         "y: read r<l % 2>[0 +: 8], o: write r<(l + 1) % 2>[0 +: 8])", "}"],
        {"r": (0, 3), "t": (2, 3)},
    ),
    "written as a whole by every iteration and read after the loop: the last iteration counts": (
        ["loop l < 4 {", WRITE_T, READ_T, WRITE_B, "}", READ_B],
        {"b": (3, 4), "t": (1, 2)},
    ),
    "written part by part in a loop and read after it": (
        ["loop l < 4 {", WRITE_T, "compute k(x: read t[0 +: 8])", "compute k(o: write b[l * 8 +: 8])", "}", READ_B],
        {"b": (0, 4), "t": (1, 2)},
    ),
    "arriving part by part in a loop and read after it": (
        ["loop l < 4 {", WRITE_T, READ_T, "start w[l * 8 +: 8] -> b[l * 8 +: 8] signals s", "wait s rows=8", "}",
         READ_B],
        {"b": (0, 5), "t": (1, 2)},
    ),
    "written part by part, by an outer counter within an inner loop": (
        ["loop l < 4 {", WRITE_T, READ_T, "loop i < 2 {", "compute k(o: write b[l * 8 +: 8])", "}", "}", READ_B],
        {"b": (0, 5), "t": (1, 2)},
    ),
    "written part by part, by an inner counter: the inner loop is enough": (
        ["loop l < 4 {", WRITE_T, READ_T, "loop i < 4 {", "compute k(o: write b[i * 8 +: 8])", WRITE_T, READ_T, "}",
         READ_B, WRITE_T, READ_T, "}"],
        {"b": (3, 7), "t": (1, 3, 5, 6, 8, 9)},
    ),
    "written by both counters": (
        ["loop l < 2 {", WRITE_T, READ_T, "loop i < 2 {", "compute k(o: write b[l * 16 + i * 8 +: 8])", "}", "}",
         READ_B],
        {"b": (0, 5), "t": (1, 2)},
    ),
    "written by one iteration only and read after the loop": (
        ["loop l < 4 {", WRITE_T, READ_T, "when l == 0 {", WRITE_B, "}", "}", READ_B],
        {"b": (0, 5), "t": (1, 2)},
    ),
    "written in an inner loop that only some iterations enter": (
        ["loop l < 4 {", WRITE_T, READ_T, "loop i < 1 - min(l, 1) {", WRITE_B, "}", "}", READ_B],
        {"b": (0, 5), "t": (1, 2)},
    ),
    "written under a condition that the loop changes": (
        ["set f[0] = 0", "loop l < 4 {", WRITE_T, READ_T, "when f[0] == 0 {", WRITE_B, "}", "set f[0] = 1", "}",
         READ_B],
        {"b": (1, 7), "t": (2, 3)},
    ),
    "written under a condition that the loop leaves alone": (
        ["loop l < 4 {", WRITE_T, READ_T, "when n[0] == 2 {", WRITE_B, "}", "}", "when n[0] == 2 {", READ_B, "}"],
        {"b": (4, 6), "t": (1, 2)},
    ),
    "read under another value of the condition than it was written under": (
        ["set f[0] = 1", WRITE_B, "loop l < 4 {", "set f[0] = min(l, 1)", "when f[0] == 0 {", WRITE_B, "}",
         "set f[0] = 0", "when f[0] == 0 {", READ_B, "}", WRITE_T, READ_T, "}"],
        {"b": (1, 10), "t": (9, 10)},
    ),
    "a transfer that the next iteration awaits": (
        [START_B, "loop l < 4 {", "wait s rows=32", READ_B, START_B, WRITE_T, READ_T, "}", "wait s rows=32"],
        {"b": (0, 7), "t": (5, 6)},
    ),
    "a transfer awaited after the loop": (
        [WRITE_B, "loop l < 4 {", WRITE_T, READ_T, "when l == 0 {", "start b[0 +: 32] -> out[0 +: 32] signals s", "}",
         "}", WRITE_T, READ_T, "wait s rows=32"],
        {"b": (0, 8), "t": (2, 7)},
    ),
    "nested loops: what the outer loop carries is live in the inner one": (
        [WRITE_B, "loop l < 2 {", "loop i < 2 {", WRITE_T, READ_T, "}", READ_B, "}"],
        {"b": (0, 5), "t": (3, 4)},
    ),
    "nested loops: a temporary of the inner loop stays one": (
        ["loop l < 2 {", WRITE_B, READ_B, "loop i < 2 {", WRITE_T, READ_T, "}", "}"],
        {"b": (1, 2), "t": (4, 5)},
    ),
    "a loop of unknown trips may have written nothing": (
        [WRITE_B, "loop l < n[0] {", WRITE_T, READ_T, WRITE_B, "}", READ_B],
        {"b": (0, 1, 4, 5), "t": (2, 3)},
    ),
    "written again as a whole: nobody needs it in between": (
        [WRITE_B, READ_B, WRITE_T, READ_T, WRITE_B, READ_B],
        {"b": (0, 1, 4, 5), "t": (2, 3)},
    ),
    "written again in part: the rest is still needed": (
        [WRITE_B, READ_B, WRITE_T, READ_T, "compute k(o: write b[0 +: 24])", READ_B],
        {"b": (0, 5), "t": (2, 3)},
    ),
    "updated: what it held is needed": (
        [WRITE_B, READ_B, WRITE_T, READ_T, "compute k(o: update b[0 +: 32])", READ_B],
        {"b": (0, 5), "t": (2, 3)},
    ),
    "written again only sometimes": (
        [WRITE_B, "loop l < 4 {", READ_B, WRITE_T, READ_T, "when n[0] == 2 {", WRITE_B, "}", "}"],
        {"b": (0, 6), "t": (3, 4)},
    ),
    "written again only in an inner loop that may not run": (
        [WRITE_B, "loop l < 4 {", READ_B, WRITE_T, READ_T, "loop i < n[0] {", WRITE_B, "}", "}"],
        {"b": (0, 6), "t": (3, 4)},
    ),
    "written again part by part by an inner loop": (
        [WRITE_B, "loop l < 4 {", READ_B, WRITE_T, READ_T, "loop i < 4 {", "compute k(o: write b[i * 8 +: 8])", "}",
         "}"],
        {"b": (0, 2, 5, 6), "t": (3, 4)},
    ),
    "written by a loop that does not reach all of it": (
        [WRITE_B, "loop l < 4 {", READ_B, WRITE_T, READ_T, "loop i < 3 {", "compute k(o: write b[i * 8 +: 8])", "}",
         "}"],
        {"b": (0, 6), "t": (3, 4)},
    ),
    "written part by part by a loop that also reads it": (
        [WRITE_B, WRITE_T, READ_T, "loop i < 4 {", "compute k(x: read b[0 +: 8])", "compute k(o: write b[i * 8 +: 8])",
         "}", READ_B],
        {"b": (0, 6), "t": (1, 2)},
    ),
    "one of several slots is written again": (
        ["loop l < 4 {", "compute k(o: write r<l % 2>[0 +: 8])", WRITE_T, READ_T, "}", "compute k(x: read r[0 +: 8])"],
        {"r": (0, 4), "t": (2, 3)},
    ),
    "all slots are written again": (
        ["compute k(o: write r[0 +: 8], p: write r<1>[0 +: 8])", "loop l < 4 {",
         "compute k(x: read r<l % 2>[0 +: 8])", WRITE_T, READ_T,
         "loop i < 2 {", "compute k(o: write r<i>[0 +: 8])", "}", "}"],
        {"r": (0, 2, 5, 6), "t": (3, 4)},
    ),
    "the next iteration awaits the transfer that writes it: free from its last read to the next start": (
        [START_B, "loop l < 4 {", "wait s rows=32", READ_B, WRITE_T, READ_T, START_B, "}", "wait s rows=32"],
        {"b": (0, 3, 6, 7), "t": (4, 5)},
    ),
    "a transfer from it that is awaited before it is written again": (
        [WRITE_B, "loop l < 4 {", "start b[0 +: 32] -> out[0 +: 32] signals s", WRITE_T, READ_T, "wait s rows=32",
         WRITE_T, READ_T, WRITE_B, "}"],
        {"b": (0, 5, 8, 8), "t": (3, 4, 6, 7)},
    ),
    "phases do not matter": (
        ["phase one {", WRITE_B, "}", "loop l < 4 {", "phase two {", READ_B, "}", "phase three {", WRITE_T, READ_T, "}",
         "phase four {", WRITE_B, "}", "}"],
        {"b": (1, 4, 9, 9), "t": (6, 7)},
    ),
    "written and read in cases of a switch: these never meet": (
        ["switch n[0] {", "case 0 {", WRITE_T, READ_T, "}", "case 1 {", WRITE_B, READ_B, "}", "case 2 {", "}",
         "case 3 {", WRITE_B, WRITE_T, READ_T, READ_B, "}", "case 4 {", WRITE_T, READ_T, "}", "}"],
        {"b": (5, 6, 9, 12), "t": (2, 3, 10, 11, 14, 15)},
    ),
    "written before a switch and read in one case: the others do not need it": (
        [WRITE_B, "switch n[0] {", "case 0 {", WRITE_T, READ_T, "}", "case 1 {", WRITE_T, READ_B, READ_T, "}",
         "case 2 {", "}", "case 3 {", WRITE_T, READ_B, READ_T, "}", "case 4 {", "}", "}"],
        {"b": (0, 1, 5, 7, 10, 12), "t": (3, 4, 6, 8, 11, 13)},
    ),
    "written in every case and read after the switch": (
        ["switch n[0] {", *[line for i in range(5) for line in (f"case {i} {{", WRITE_T, READ_T, WRITE_B, "}")], "}",
         READ_B],
        {"b": (4, 4, 8, 8, 12, 12, 16, 16, 20, 21), "t": (2, 3, 6, 7, 10, 11, 14, 15, 18, 19)},
    ),
    "written in every case of a switch in a loop, but in one of them only sometimes": (
        ["loop l < 4 {", "switch n[0] {",
         *[line for i in range(4) for line in (f"case {i} {{", WRITE_T, READ_T, WRITE_B, "}")],
         "case 4 {", WRITE_T, READ_T, "when l == 0 {", WRITE_B, "}", "}", "}", READ_B, "}"],
        {"b": (0, 2, 5, 6, 9, 10, 13, 14, 17, 23), "t": (3, 4, 7, 8, 11, 12, 15, 16, 19, 20)},
    ),
    "written in every case of a switch in a loop and read after the switch": (
        ["loop l < 4 {", "switch n[0] {",
         *[line for i in range(5) for line in (f"case {i} {{", WRITE_T, READ_T, WRITE_B, "}")], "}", READ_B, "}"],
        {"b": (5, 5, 9, 9, 13, 13, 17, 17, 21, 22), "t": (3, 4, 7, 8, 11, 12, 15, 16, 19, 20)},
    ),
}  # fmt: skip


def program(operations: list[str]):
    return parse_program(DECLARATIONS + "\n".join(operations) + "\n}")


def spans(operations: list[str]) -> dict[str, tuple[int, ...]]:
    """By buffer the first and the last operation of each span, one after the other."""
    return {r.buffer: tuple(x for a, b in r.spans for x in (a, b - 1)) for r in live_ranges(program(operations))}


@pytest.mark.parametrize("name", CASES)
def test_a_buffer_is_live(name):
    operations, expected = CASES[name]
    assert spans(operations) == expected


@pytest.mark.parametrize("name", CASES)
def test_addresses_that_follow_from_the_live_ranges_are_proven(name):
    assert str(verify(allocate(program(CASES[name][0]), 64), LIMITS)) == "proven"


def test_a_buffer_that_nothing_uses_has_no_live_range():
    assert [r.buffer for r in live_ranges(program([WRITE_T, READ_T]))] == ["t"]


def test_a_buffer_of_any_size_takes_no_longer():
    """Its definition counts spans, not rows, so that what no memory holds is refused with its bytes in seconds."""
    rows = 8 * 10**9
    huge = parse_program(
        f"program p {{\n  pool v rows=0\n  buffer b in v rows={rows} slots=1 align=8\n"
        "  buffer t in v rows=8 slots=1 align=8\n"
        f"  compute k(o: write b[0 +: {rows // 2}], p: write b[{rows // 2} +: {rows // 2}])\n"
        f"  compute k(x: read b[0 +: {rows}])\n  compute k(o: write t[0 +: 8])\n"
        f"  compute k(o: write b[0 +: {rows}])\n  compute k(x: read b[0 +: {rows}])\n}}\n"
    )
    assert {live.buffer: live.spans for live in live_ranges(huge)} == {"b": ((0, 2), (3, 5)), "t": ((2, 3),)}


def test_a_reader_of_the_wait_keeps_every_buffer_of_its_semaphore():
    """A wait says only how many rows have arrived, so both transfers may still be on their way until it."""
    operations = [START_B, "start w[0 +: 8] -> t[0 +: 8] signals s", "wait s rows=40", READ_B]
    assert spans(operations) == {"b": (0, 3), "t": (1, 2)}


EXCHANGE = """program p {
  devices 2
  pool v rows=0
  buffer mine in v rows=8 slots=1 align=8
  buffer inbox in v rows=8 slots=1 align=8
  buffer t in v rows=8 slots=1 align=8
  semaphore sent[1] dma
  semaphore arrived[1] dma
  semaphore go[1] regular
  barrier
  compute k(o: write t[0 +: 8])
  compute k(x: read t[0 +: 8])
  compute k(o: write mine[0 +: 8])
  remote.start mine[0 +: 8] -> inbox[0 +: 8] on rank ^ 1 sent sent signals arrived
  wait sent rows=8
  wait arrived rows=8
  compute k(x: read inbox[0 +: 8])
  barrier
  compute k(o: write t[0 +: 8])
  compute k(x: read t[0 +: 8])
  compute k(o: write mine[0 +: 8])
  compute k(x: read mine[0 +: 8])
}
"""


def test_a_buffer_that_peers_write_is_live_in_the_whole_program():
    """A peer writes when it comes to it. What is sent is live until the wait, and until a barrier if one follows."""
    program = parse_program(EXCHANGE)
    assert {live.buffer: live.spans for live in live_ranges(program)} == {
        "mine": ((3, 9), (11, 13)),
        "inbox": ((0, 13),),
        "t": ((1, 3), (9, 11)),
    }
    assert str(verify(allocate(program, 64), LIMITS)) == "proven"

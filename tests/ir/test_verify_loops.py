"""Loops: what the proof accepts, by induction where it can, and what it says of a fault far into a loop."""

from __future__ import annotations

import time

import pytest
from samples import SAMPLES, kv, ring

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)


def check(text: str):
    return verify(parse_program(text), LIMITS)


@pytest.mark.parametrize("name", SAMPLES)
def test_correct_programs_are_proven(name):
    assert str(check(SAMPLES[name])) == "proven"


@pytest.mark.parametrize("sample", [ring, kv])
def test_depth_costs_nothing(sample):
    shallow, deep = check(sample(40)), check(sample(4000))
    assert shallow.proven and deep.proven
    assert deep.statistics.operations == shallow.statistics.operations
    assert deep.statistics.skipped_iterations == shallow.statistics.skipped_iterations + 3960


def test_a_fault_in_the_last_iterations_only_is_found_after_a_jump():
    verdict = check(ring(300).replace("l * 3 + j + 3 < 900", "l * 3 + j + 3 < 899"))
    assert [(refusal.rule, dict(refusal.place.counters)) for refusal in verdict.refusals] == [
        ("wait-never-satisfied", {"l": 299, "j": 2}),
    ]


def test_a_read_past_the_end_of_a_weight_is_found_after_a_jump():
    verdict = check(ring(300).replace(f"rows={300 * 48} weight", f"rows={300 * 48 - 8} weight"))
    assert [refusal.rule for refusal in verdict.refusals] == ["out-of-range", "wait-never-satisfied"]
    assert dict(verdict.refusals[0].place.counters) == {"l": 298, "j": 2}


def test_a_distance_between_iterations_is_told():
    verdict = check(kv().replace("        wait chunk_out[r] rows=8\n", "", 1))
    assert str(verdict.refusals[0]) == (
        "overwrite-while-read: `start kv[(l * 2 + r) * 128 + pos[r] // 8 * 8 +: 8] -> chunk<r>[0 +: 8] signals "
        "chunk_in[r]` (line 25, l=1, r=0) writes rows 0..7 (bytes 0..4095) of chunk while the transfer of "
        "`start chunk<r>[0 +: 8] -> kv[(l * 2 + r) * 128 + pos[r] // 8 * 8 +: 8] signals chunk_out[r]` "
        "(line 28, l=0, r=0) may still be reading them, started 1 iteration of l ago. "
        "Repair: wait for 8 rows of chunk_out[0] before line 25."
    )


def test_reading_the_tile_that_holds_the_newest_position_is_refused():
    """Tiles t < pos // 16 are disjoint from the chunk that is written back; tile pos // 16 is not."""
    text = kv().replace(
        "set full[r] = active[r] * (pos[r] // 16)", "set full[r] = active[r] * min(pos[r] // 16 + 1, 7)"
    )
    assert {refusal.rule for refusal in check(text).refusals} == {"read-while-arriving"}


def test_another_layer_of_the_cache_may_be_read_during_the_write_back():
    text = """
    program p {
      buffer a in v rows=8 slots=2 align=8
      pool v rows=0
      hbm kv rows=640 state
      smem pos[1] in 0..56 input
      semaphore s[2] dma
      loop l < 10 {
        start kv[l * 64 + pos[0] // 8 * 8 +: 8] -> a[0 +: 8] signals s
        when l > 0 {
          wait s[1] rows=8
        }
        wait s rows=8
        start a[0 +: 8] -> kv[l * 64 + pos[0] // 8 * 8 +: 8] signals s[1]
        when l + 1 < 10 {
          wait s[1] rows=8
          start kv[l * 64 + 64 + pos[0] // 8 * 8 +: 8] -> a<1>[0 +: 8] signals s[1]
        }
      }
      wait s[1] rows=8
    }
    """
    assert str(check(text)) == "proven"


def test_twenty_thousand_operations_take_seconds():
    body = "\n".join(
        f"start w[{i % 64 * 8} +: 8] -> a<{i % 4}>[0 +: 8] signals s[{i % 4}]\nwait s[{i % 4}] rows=8\n"
        f"compute use(x: read a<{i % 4}>[0 +: 8], out: write b[0 +: 8])\n"
        "compute copy(x: read b[0 +: 8], out: write c[0 +: 8])"
        for i in range(5000)
    )
    program = parse_program(f"""
    program long {{
      pool v rows=0
      buffer a in v rows=8 slots=4 align=8
      buffer b in v rows=8 slots=1 align=8
      buffer c in v rows=8 slots=1 align=8
      hbm w rows=512 weight
      semaphore s[4] dma
      {body}
    }}""")
    start = time.process_time()
    assert verify(program, LIMITS).proven
    assert time.process_time() - start < 5

"""What is proven of programs on several devices, and just what more skew or one slot less makes unsafe."""

from __future__ import annotations

import pytest

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, Verdict, context, verify
from schedc.ir.verify.devices.events import Event, Post
from schedc.ir.verify.devices.symmetry import symmetries

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
EXCHANGE = """
program exchange {{
  devices {devices}
  pool work rows=128
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots={slots} align=8 at 8
  semaphore sent[1] dma
  semaphore arrived[{slots}] dma
  semaphore free[1] regular
  barrier
  compute zero(out: write x[0 +: 8])
  loop l < 9 {{
    remote.start x[0 +: 8] -> inbox<l % {slots}>[0 +: 8] on {peer} sent sent signals arrived[l % {slots}]
    wait arrived[l % {slots}] rows=8
    wait sent rows=8
    compute add(x: read inbox<l % {slots}>[0 +: 8], out: update x[0 +: 8])
    {after}
  }}
}}
"""


def exchange(devices: int = 2, slots: int = 2, peer: str = "rank ^ 1", after: str = "") -> Verdict:
    return verify(parse_program(EXCHANGE.format(devices=devices, slots=slots, peer=peer, after=after)), LIMITS)


def rules(verdict: Verdict) -> set[str]:
    return {refusal.rule for refusal in verdict.refusals}


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_two_slots_are_enough_for_a_pair_since_each_waits_for_the_other(devices):
    assert exchange(devices).proven


def test_one_slot_is_not_enough_for_a_pair():
    assert "read-while-arriving" in rules(exchange(slots=1))


@pytest.mark.parametrize("devices", [3, 4, 5])
def test_round_a_ring_a_device_can_be_as_many_iterations_ahead_as_there_are_devices(devices):
    """Device 0 is ahead of device 1 by one for every device between them that is ahead of the next."""
    ring = f"(rank + 1) % {devices}"
    assert exchange(devices, devices, ring).proven
    assert "read-while-arriving" in rules(exchange(devices, devices - 1, ring))


def test_a_barrier_in_each_iteration_makes_one_slot_enough():
    assert exchange(4, 1, "(rank + 1) % 4", "barrier").proven


def test_an_acknowledgement_makes_one_slot_enough():
    after = "signal free amount=1 on (rank + 3) % 4\n    await free amount=1"
    assert exchange(4, 1, "(rank + 1) % 4", after).proven


def test_an_acknowledgement_to_the_wrong_neighbour_does_not():
    after = "signal free amount=1 on (rank + 1) % 4\n    await free amount=1"
    assert "read-while-arriving" in rules(exchange(4, 1, "(rank + 1) % 4", after))


ROLES = """
program roles {{
  devices 3
  pool work rows=64
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots=2 align=8 at 8
  smem pos[1] in 0..{most} input
  semaphore sent[2] dma
  semaphore arrived[2] dma
  barrier
  compute zero(out: write x[0 +: 8])
  when rank == 0 {{
    loop t < pos[0] {{
      loop p < 2 {{
        remote.start x[0 +: 8] -> inbox[0 +: 8] on p + 1 sent sent[p] signals arrived
      }}
      loop p < 2 {{
        wait sent[p] rows=8
        wait arrived[1] rows=8
      }}
    }}
  }}
  when rank > 0 {{
    loop t < pos[0] {{
      wait arrived rows=8
      compute use(x: read inbox[0 +: 8])
      remote.start x[0 +: 8] -> inbox<{slot}>[0 +: 8] on 0 sent sent signals arrived[1]
      wait sent rows=8
    }}
  }}
}}
"""


def test_roles_by_rank_and_loops_of_unknown_length_are_proven_in_every_world():
    program = parse_program(ROLES.format(most=5, slot="rank - 1"))
    verdict = verify(program, LIMITS)
    assert {(r.rule, r.place.device, r.other.device) for r in verdict.refusals} == set(), verdict


def test_two_devices_that_send_to_the_same_rows_of_a_third_are_refused():
    verdict = verify(parse_program(ROLES.format(most=1, slot="1")), LIMITS)
    assert {(r.rule, r.place.device, r.other.device) for r in verdict.refusals} == {("write-while-arriving", 2, 1)}


def test_a_refusal_of_every_device_is_reported_once():
    assert len(exchange(8, slots=1).refusals) == len(exchange(2, slots=1).refusals)


TABLE = """
program layers {
  pool work rows=64
  buffer w in work rows=8 slots=2 align=8 at 0
  buffer y in work rows=8 slots=1 align=8 at 16
  hbm dense rows=80 weight
  hbm sparse rows=80 weight
  table kind = 0, 1, 1, 0, 1, 0
  semaphore arrived[2] dma
  start dense[0 +: 8] -> w[0 +: 8] signals arrived
  loop l < 5 {
    switch kind[l + 1] {
      case 0 {
        start dense[(l + 1) * 8 +: 8] -> w<(l + 1) % 2>[0 +: 8] signals arrived[(l + 1) % 2]
      }
      case 1 {
        start sparse[(l + 1) * 8 +: 8] -> w<(l + 1) % 2>[0 +: 8] signals arrived[(l + 1) % 2]
      }
    }
    wait arrived[l % 2] rows=8
    compute use(w: read w<l % 2>[0 +: 8])
  }
  wait arrived[1] rows=8
}
"""


def test_a_switch_over_a_table_may_start_what_the_next_iteration_awaits():
    assert verify(parse_program(TABLE), LIMITS).proven


def test_a_case_that_starts_nothing_leaves_its_layer_waiting():
    text = TABLE.replace(
        "        start sparse[(l + 1) * 8 +: 8] -> w<(l + 1) % 2>[0 +: 8] signals arrived[(l + 1) % 2]\n", ""
    )
    first = verify(parse_program(text), LIMITS).refusals[0]
    assert (first.rule, dict(first.place.counters)) == ("wait-never-satisfied", {"l": 1})


def test_a_selector_that_depends_on_scalars_takes_every_case():
    """One case writes what is read, the other does not: the read is refused, unless both do."""
    text = """
    program p {
      pool work rows=8
      buffer y in work rows=8 slots=1 align=8 at 0
      smem on[1] in 0..1 input
      table kind = 4, 7
      switch kind[on[0]] {
        case 4 {
          compute zero(out: write y[0 +: 8])
        }
        case 7 {
          compute zero(out: write y[0 +: ROWS])
        }
      }
      compute use(x: read y[0 +: 8])
    }
    """
    assert verify(parse_program(text.replace("ROWS", "8")), LIMITS).proven
    assert rules(verify(parse_program(text.replace("ROWS", "4")), LIMITS)) == {"guard-mismatch"}


def test_a_proof_that_would_take_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr(context, "_MOST_OPERATIONS", 20_000)
    text = EXCHANGE.format(devices=2, slots=2, peer="rank ^ 1", after="").replace("l < 9", "l < 9000000")
    (refusal,) = verify(parse_program(text), LIMITS).refusals
    assert refusal.rule == "too-long"


LATE = """
program late {
  devices 2
  pool work rows=32
  buffer mine in work rows=8 slots=2 align=8 at 0
  buffer inbox in work rows=8 slots=2 align=8 at 16
  semaphore sent[2] dma
  semaphore received[2] dma
  barrier
  loop l < 6 {
    compute make(out: write mine<l % SLOTS>[0 +: 8])
    when 1 < l {
      wait sent[l % 2] rows=8
    }
    remote.start mine<l % SLOTS>[0 +: 8] -> inbox<l % 2>[0 +: 8] on rank ^ 1 sent sent[l % 2] signals received[l % 2]
    wait received[l % 2] rows=8
    compute use(x: read inbox<l % 2>[0 +: 8])
  }
  wait sent rows=8
  wait sent[1] rows=8
}
"""


def test_what_a_peer_answers_after_it_has_waited_has_been_read():
    """The peer sends message l+1 after it has waited for message l, and this device waits for that."""
    assert verify(parse_program(LATE.replace("SLOTS", "2")), LIMITS).proven


def test_what_a_peer_may_not_have_waited_for_may_still_be_read():
    assert rules(verify(parse_program(LATE.replace("SLOTS", "1")), LIMITS)) == {"overwrite-while-read"}


def test_a_refused_program_is_not_proven_to_its_end():
    """One slot too few is known after a few iterations; the induction that would skip the rest does not go through."""
    text = """
    program starved {
      pool work rows=16
      buffer a in work rows=8 slots=2 align=8 at 0
      hbm w rows=8 weight
      semaphore s[2] dma
      loop i < 100000000 {
        start w[0 +: 8] -> a<i % 2>[0 +: 8] signals s[i % 2]
        wait s rows=8
      }
    }
    """
    verdict = verify(parse_program(text), LIMITS)
    assert not verdict.proven
    assert verdict.statistics.operations < 100_000


def trace(*events: str) -> list[Event]:
    """`>2 t` posts to device 2, `<t` takes, `|` is a barrier."""
    found = []
    for event in events:
        if event[0] == ">":
            device, element = event[1:].split()
            found.append(Event("post", 0, (), (Post(int(device), (element, 0), 8),)))
        else:
            found.append(Event("barrier" if event == "|" else "take", 0, (), element=(event[1:], 0), amount=8))
    return found


@pytest.mark.parametrize(
    ("traces", "expected"),
    [
        ([trace("|", f">{(d + 1) % 3} t", "<t") for d in range(3)], [(0, 1, 2), (1, 2, 0), (2, 0, 1)]),
        (
            [trace(f">{d ^ 1} t", "<t", f">{d ^ 2} t") for d in range(4)],
            [tuple(d ^ e for d in range(4)) for e in range(4)],
        ),
        ([trace(f">{d ^ 1} t", "<t") for d in range(4)], [(0, 1, 2, 3), None, None, None]),
        ([trace(">1 t", "<t"), trace(">2 t", "<t"), trace("<t", ">0 t")], [(0, 1, 2), None, None]),
    ],
    ids=["a ring is turned", "pairs of pairs are mirrored", "devices that nothing connects", "one is slower"],
)
def test_devices_in_the_same_place_are_found_by_whom_they_post_to(traces, expected):
    assert symmetries(traces) == expected

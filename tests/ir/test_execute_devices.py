"""The executor finds what bad timing does between devices: transfers, signals, barriers, kernels that begin late."""

from __future__ import annotations

from functools import cache

import pytest

from schedc.ir.execute import Fault, run, unfold
from schedc.ir.text_parse import parse_program

SEEDS = 60

EXCHANGE = """
program exchange {
  devices 2
  pool work rows=32
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots=SLOTS align=8 at 8
  hbm out rows=8 output
  semaphore sent[1] dma
  semaphore arrived[SLOTS] dma
  semaphore stored[1] dma
  barrier
  compute zero(out: write x[0 +: 8])
  loop l < 6 {
    remote.start x[0 +: 8] -> inbox<l % SLOTS>[0 +: 8] on rank ^ 1 sent sent signals arrived[l % SLOTS]
    wait sent rows=8
    wait arrived[l % SLOTS] rows=8
    compute add(y: read inbox<l % SLOTS>[0 +: 8], x: update x[0 +: 8])
  }
  start x[0 +: 8] -> out[0 +: 8] signals stored
  wait stored rows=8
}
"""

GATHER = """
# Each device passes on to its right what it got from its left, straight into the result.
program gather {
  devices 4
  hbm mine rows=8 input
  hbm all rows=32 output
  semaphore copied[1] dma
  semaphore sent[1] dma
  semaphore arrived[3] dma
  barrier
  start mine[0 +: 8] -> all[rank * 8 +: 8] signals copied
  wait copied rows=8
  loop h < 3 {
    remote.start all[(rank + 4 - h) % 4 * 8 +: 8] -> all[(rank + 4 - h) % 4 * 8 +: 8]
      on (rank + 1) % 4 sent sent signals arrived[h]
    wait sent rows=8
    wait arrived[h] rows=8
  }
}
"""

CREDIT = """
# Device 0 sends ten messages through two slots of device 1, which gives a slot back when it has read it.
program credit {
  devices 2
  pool work rows=24
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots=2 align=8 at 8
  semaphore sent[1] dma
  semaphore arrived[2] dma
  semaphore free[1] regular
  barrier
  when rank == 0 {
    loop m < 10 {
      when m >= 2 {
        await free amount=1
      }
      compute make(out: write x[0 +: 8])
      remote.start x[0 +: 8] -> inbox<m % 2>[0 +: 8] on 1 sent sent signals arrived[m % 2]
      wait sent rows=8
    }
  }
  when rank == 1 {
    loop m < 10 {
      wait arrived[m % 2] rows=8
      compute use(x: read inbox<m % 2>[0 +: 8])
      when m < 8 {
        signal free amount=1 on 0
      }
    }
  }
}
"""


def exchange(slots: int) -> str:
    return EXCHANGE.replace("SLOTS", str(slots))


@cache
def faults(text: str) -> tuple[tuple[Fault, ...], ...]:
    """Of each seed."""
    trace = unfold(parse_program(text), {})
    return tuple(tuple(run(trace, seed)) for seed in range(SEEDS))


def kinds(text: str) -> set[str]:
    return {fault.kind for of_seed in faults(text) for fault in of_seed}


def devices(body: str, count: int = 2, declarations: str = "") -> str:
    return f"""program p {{
      devices {count}
      pool work rows=16
      buffer a in work rows=8 slots=1 align=8 at 0
      buffer b in work rows=8 slots=1 align=8 at 8
      hbm w rows=64 weight
      semaphore sent[1] dma
      semaphore arrived[2] dma
      semaphore g[1] regular
      {declarations}
      {body}
    }}"""


SEND = "remote.start a[0 +: 8] -> b[0 +: 8] on 1 sent sent signals arrived"
SENT = f"compute make(o: write a[0 +: 8])\n{SEND}\nwait sent rows=8"


@pytest.mark.parametrize("text", [exchange(2), exchange(3), GATHER, CREDIT])
def test_right_programs_have_no_fault(text):
    assert kinds(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        exchange(1),
        EXCHANGE.replace("arrived[SLOTS]", "arrived[1]").replace("arrived[l % SLOTS]", "arrived").replace("SLOTS", "2"),
        exchange(2).replace("wait sent rows=8\n    wait arrived[l % 2] rows=8", "wait arrived[l % 2] rows=8").replace(
            "  start x", "wait sent rows=48\n  start x"),
        GATHER.replace("arrived[3]", "arrived[1]").replace("arrived[h]", "arrived"),
        CREDIT.replace("m >= 2", "m >= 3").replace("m < 8", "m < 7"),
        CREDIT.replace("compute use(x: read inbox<m % 2>[0 +: 8])\n", "").replace(
            "signal free amount=1 on 0\n      }", "signal free amount=1 on 0\n      }\n"
            "compute use(x: read inbox<m % 2>[0 +: 8])"),
    ],
    ids=["one slot", "one semaphore for two slots", "a source changes before it was sent",
         "one semaphore for all hops", "a credit too much", "a credit too early"],
)  # fmt: skip
def test_wrong_programs_read_wrong_within_few_seeds(text):
    first = next(seed for seed, of_seed in enumerate(faults(text)) if of_seed)
    assert first < 8
    assert "wrong-read" in kinds(text)
    assert kinds(text) <= {"wrong-read", "wrong-result"}


def test_a_fault_says_which_device_and_whose_rows():
    fault = next(fault for of_seed in faults(exchange(1)) for fault in of_seed)
    assert fault.device in (0, 1)
    assert "wrote on device" in fault.detail


def test_what_the_order_of_devices_decides_is_a_fault():
    """The sender never waits for the receiver, so the messages that it reads are the sender's choice."""
    text = CREDIT.replace("await free amount=1", "").replace("signal free amount=1 on 0", "")
    assert "wrong-read" in kinds(text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"barrier\nwhen rank == 0 {{\n{SENT}\n}}\nwhen rank == 1 {{\nwait arrived rows=8\n}}", set()),
        (f"when rank == 0 {{\n{SENT}\n}}\nwhen rank == 1 {{\nwait arrived rows=8\n}}", {"peer-not-started"}),
        ("when rank == 0 {\nsignal g amount=1 on 1\n}\nwhen rank == 1 {\nawait g amount=1\n}", {"peer-not-started"}),
        ("when rank == 1 {\nsignal g amount=1 on 0\n}\nwhen rank == 0 {\nawait g amount=1\n}", {"peer-not-started"}),
    ],
)
def test_a_peer_may_not_have_begun(body, expected):
    assert kinds(devices(body)) == expected


def test_a_signal_from_a_peer_says_that_it_has_begun():
    body = """when rank != 2 {
      barrier
    }"""
    assert kinds(devices(body, 3)) == {"deadlock"}
    body = """barrier
    when rank == 0 {
      signal g amount=1 on 1
    }
    when rank == 1 {
      await g amount=1
      signal g amount=1 on 0
    }
    when rank == 0 {
      await g amount=1
    }"""
    assert kinds(devices(body)) == set()


@pytest.mark.parametrize(
    "body",
    [
        "when rank == 0 {\nbarrier\n}",
        "barrier\nloop l < rank {\nbarrier\n}",
        "barrier\nawait g amount=1\nsignal g amount=1 on rank ^ 1",
        "when rank == 0 {\nbarrier\nawait g amount=1\n}\nwhen rank == 1 {\nbarrier\n}",
    ],
)
def test_devices_that_wait_for_what_none_does_are_stuck(body):
    assert kinds(devices(body)) == {"deadlock"}


def test_a_deadlock_names_each_device_that_is_stuck():
    (first, *_) = faults(devices("barrier\nloop l < rank {\nbarrier\n}", 3))
    assert [(fault.device, fault.step, fault.detail) for fault in first] == [
        (1, 1, "a device does not come to barrier 2: barrier with {'l': 0}"),
        (2, 1, "a device does not come to barrier 2: barrier with {'l': 0}"),
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"barrier\nwhen rank == 0 {{\n{SENT}\n}}", {"unfinished", "semaphore-left"}),
        ("barrier\nwhen rank == 0 {\nsignal g amount=1 on 1\n}", {"semaphore-left"}),
        (f"compute k(o: write a[0 +: 8])\nbarrier\nwhen rank == 0 {{\n{SEND}\n}}\n"
         "when rank == 1 {\nwait arrived rows=8\n}", {"unfinished", "semaphore-left"}),
    ],
    ids=["nobody awaits the arrival", "nobody awaits the signal", "the sender does not wait until its source is read"],
)  # fmt: skip
def test_a_device_may_end_before_all_has_come(body, expected):
    assert kinds(devices(body)) == expected


def test_what_comes_after_the_end_is_charged_to_the_receiver():
    text = devices(f"barrier\nwhen rank == 0 {{\n{SENT}\n}}")
    assert all(faults(text))
    assert {fault.device for of_seed in faults(text) for fault in of_seed} == {1}
    assert {fault.step for of_seed in faults(text) for fault in of_seed} == {1}


def test_devices_have_scalars_of_their_own():
    body = """barrier
    set n[0] = rank * 2
    loop l < n[0] {
      signal g amount=1 on 0
    }
    when rank == 0 {
      await g amount=2
    }"""
    assert kinds(devices(body, declarations="smem n[1] in 0..2 local")) == set()


def test_the_same_seed_gives_the_same_run():
    trace = unfold(parse_program(exchange(1)), {})
    assert tuple(tuple(run(trace, seed)) for seed in range(SEEDS)) == faults(exchange(1))

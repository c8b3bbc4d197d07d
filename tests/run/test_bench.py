"""Timing of steps, with a clock and a device that are made up."""

from dataclasses import dataclass, field

import pytest

from schedc.errors import CheckFailed, UserError
from schedc.run.bench import require_tpu, time_steps


@dataclass
class Device:
    """A call takes 50 µs, and 100 µs a step; the first of each length a second more."""

    now: float = 0.0
    calls: list[tuple[int, list[int]]] = field(default_factory=list)

    def steps(self, count: int, tokens, positions) -> None:
        self.calls.append((count, list(positions)))
        first = count not in [known for known, _ in self.calls[:-1]]
        self.now += first * 1.0 + 50e-6 + count * 100e-6

    def clock(self) -> float:
        return self.now


def test_a_step_is_what_a_step_more_takes_and_a_call_what_is_left() -> None:
    device = Device()
    timing = time_steps(device, rows=2, position=7, steps=4, calls=3, clock=device.clock)
    assert timing.step_us == pytest.approx(100.0)
    assert timing.call_us == pytest.approx(50.0)
    assert (timing.best_us, timing.worst_us) == (pytest.approx(100.0), pytest.approx(100.0))


def test_each_length_is_called_once_before_it_is_timed_and_every_call_starts_at_the_position() -> None:
    device = Device()
    time_steps(device, rows=2, position=7, steps=4, calls=3, clock=device.clock)
    assert [count for count, _ in device.calls] == [4, 8] * 4
    assert {tuple(positions) for _, positions in device.calls} == {(7, 7)}


def test_the_spread_is_that_of_the_calls() -> None:
    device, slow = Device(), [0]

    def clock() -> float:
        slow[0] += 1
        return device.now + (400e-6 if slow[0] == 8 else 0.0)

    timing = time_steps(device, rows=1, position=0, steps=4, calls=3, clock=clock)
    assert (timing.step_us, timing.worst_us) == (pytest.approx(100.0), pytest.approx(200.0))


def test_nothing_is_timed_in_no_calls() -> None:
    with pytest.raises(UserError, match="0 steps a call, 1 calls: both must be 1 or more"):
        time_steps(Device(), rows=1, position=0, steps=0, calls=1)


def test_without_a_tpu_it_is_said_what_is_missing() -> None:
    with pytest.raises(CheckFailed, match=r"there is no TPU on this machine .* needs 8 devices of TPU7x"):
        require_tpu(8, "TPU7x", has_tpu=lambda: False)
    require_tpu(8, "TPU7x", has_tpu=lambda: True)

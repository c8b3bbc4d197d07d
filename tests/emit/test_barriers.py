"""The barrier's own code, run by devices at random speeds with signals that take any time to arrive."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from schedc.backends.pallas.operations import remote

pytestmark = pytest.mark.kernel

Actions = list[tuple[str, int]]
"""(signal, peer), (wait, amount), (arrive, barrier), (pass, barrier) of one device, in order."""
Barrier = Callable[[int, int], None]
Peers = Callable[[int, int], list[int]]


def actions(monkeypatch: pytest.MonkeyPatch, barrier: Barrier, rank: int, devices: int, times: int) -> Actions:
    """What `barrier(rank, devices)` does on one device, `times` in a row."""
    found: Actions = []

    def signal(semaphore: str, amount: int, device_id: dict[str, int]) -> None:
        found.append(("signal", device_id["device"]))

    def wait(semaphore: str, amount: int) -> None:
        found.append(("wait", amount))

    monkeypatch.setattr(remote, "pl", SimpleNamespace(semaphore_signal=signal, semaphore_wait=wait))
    monkeypatch.setattr(remote, "pltpu", SimpleNamespace(get_barrier_semaphore=lambda: "the only one"))
    monkeypatch.setattr(remote, "lax", SimpleNamespace(rem=lambda a, b: a % b))
    for number in range(times):
        found.append(("arrive", number))
        barrier(rank, devices)
        found.append(("pass", number))
    return found


def passes_early(programs: list[Actions], peers: Peers, seed: int) -> bool:
    """Whether a device passes a barrier that one of its `peers` has not come to. Fails if they come to a standstill."""
    devices, chance = len(programs), random.Random(seed)
    speeds = [chance.choice((0.02, 0.3, 1.0)) for _ in range(devices)]
    held, arrived, at = [0] * devices, [-1] * devices, [0] * devices
    flying: list[int] = []
    for _ in range(100_000):
        running = [rank for rank in range(devices) if at[rank] < len(programs[rank])]
        if flying and chance.random() < 0.5:
            held[flying.pop(chance.randrange(len(flying)))] += 1
        elif not running:
            assert not any(held), "the semaphore is left"
            return False
        elif chance.random() < speeds[rank := chance.choice(running)]:
            kind, value = programs[rank][at[rank]]
            if kind == "wait" and held[rank] < value:
                continue
            held[rank] -= value if kind == "wait" else 0
            flying += [value] if kind == "signal" else []
            arrived[rank] = value if kind == "arrive" else arrived[rank]
            if kind == "pass" and any(arrived[peer] < value for peer in peers(rank, devices)):
                return True
            at[rank] += 1
    pytest.fail("the devices wait for each other for ever")


def ever_early(monkeypatch: pytest.MonkeyPatch, barrier: Barrier, devices: int, peers: Peers) -> bool:
    programs = [actions(monkeypatch, barrier, rank, devices, times=5) for rank in range(devices)]
    return any(passes_early(programs, peers, seed) for seed in range(100))


def everyone(rank: int, devices: int) -> list[int]:
    return list(range(devices))


def neighbours(rank: int, devices: int) -> list[int]:
    return [(rank + distance) % devices for distance in (1, devices - 1)]


@pytest.mark.parametrize("devices", [2, 3, 4, 5])
def test_no_device_passes_a_barrier_before_all_have_come_however_often(
    monkeypatch: pytest.MonkeyPatch, devices: int
) -> None:
    assert not ever_early(monkeypatch, remote.barrier, devices, everyone)


def of_neighbours(rank: int, devices: int) -> None:
    """The barrier of rings: on one semaphore it does not even say that both neighbours have come."""
    for peer in neighbours(rank, devices):
        remote.signal_peer("", 1, peer)
    remote.pl.semaphore_wait("", 2)


@pytest.mark.parametrize("devices", [4, 5])
def test_a_barrier_of_neighbours_would_be_passed_early(monkeypatch: pytest.MonkeyPatch, devices: int) -> None:
    assert ever_early(monkeypatch, of_neighbours, devices, neighbours)

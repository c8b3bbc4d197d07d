"""Several steps in one call say what as many calls of one step say, and leave the same caches."""

import pytest

from tests.kernels.several_steps import Both, both, both_in_a_process

pytestmark = pytest.mark.kernel


def agree(found: Both) -> None:
    assert found.in_one_call == found.one_by_one
    assert found.same_logits and found.same_caches
    first, second, third = zip(*found.in_one_call, strict=True)
    assert len({*first[:3]}) == 3 and first[2:] == (found.end, -1)  # It has ended.
    assert [said == -1 for said in second] == [False] * 2 + [True] * 2  # Its context is full.
    assert third == (-1,) * 4  # It never was active.


def test_on_one_device() -> None:
    agree(both("attention", 1))


@pytest.mark.slow
def test_on_two_devices_whose_kernel_updates_caches_and_states_in_place() -> None:
    agree(both_in_a_process("attention and states", 2))

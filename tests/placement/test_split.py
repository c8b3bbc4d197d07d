"""What a device holds of a dimension: everything is held, nothing is held twice but by copies, heads stay together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedc.placement.heads import split_heads
from schedc.placement.split import Split, evenly, whole

devices = st.integers(1, 32)


def test_parts_are_whole_panels_and_the_last_devices_hold_what_is_left() -> None:
    split = evenly(700, 4, unit=128)
    assert [split.held(device) for device in range(4)] == [
        range(0, 256), range(256, 512), range(512, 700), range(700, 700),
    ]  # fmt: skip
    assert (split.each, split.padding) == (256, 4 * 256 - 700)


def test_neighbours_that_share_hold_the_same() -> None:
    split = Split(total=3, each=1, every=2, ring=4)
    assert [list(split.held(device)) for device in range(8)] == [[0], [0], [1], [1], [2], [2], [], []]
    assert split.shard(64) == {"step": 64, "every": 2, "ring": 4}


@given(st.integers(1, 5000), devices, st.sampled_from([1, 8, 128]))
def test_every_item_is_held_once(total: int, number: int, unit: int) -> None:
    split = evenly(total, number, unit)
    held = [item for device in range(number) for item in split.held(device)]
    assert held == list(range(total))


def test_one_device_holds_all_without_padding() -> None:
    assert evenly(700, 1, unit=128) == whole(700)
    assert not whole(700).is_split and whole(700).shard() == {}


@given(st.integers(1, 16), st.integers(1, 12), devices)
def test_a_query_head_is_on_one_device_beside_its_kv_head(kv_heads: int, group: int, number: int) -> None:
    split = split_heads(kv_heads * group, kv_heads, number)
    seen = []
    for device in range(number):
        for place, head in enumerate(split.query.held(device)):
            assert split.kv.start(device) + place // split.group == head // group
            assert head // group in split.kv.held(device)
            seen.append(head)
    assert seen == list(range(kv_heads * group))


@pytest.mark.parametrize(
    ("heads", "kv_heads", "number", "expected"),
    [
        pytest.param(32, 8, 4, (8, 2, 1), id="whole groups"),
        pytest.param(64, 8, 8, (8, 1, 1), id="one group each"),
        pytest.param(32, 8, 32, (1, 1, 4), id="a kv head copied to the four devices that share its group"),
        pytest.param(9, 3, 2, (6, 2, 1), id="three kv heads over two devices, one place is padding"),
        pytest.param(28, 4, 8, (7, 1, 1), id="a group of seven is not halved, four devices hold padding"),
    ],
)
def test_query_heads_and_kv_heads_a_device_and_copies(
    heads: int, kv_heads: int, number: int, expected: tuple[int, int, int]
) -> None:
    split = split_heads(heads, kv_heads, number)
    assert (split.query.each, split.kv.each, split.kv.every) == expected

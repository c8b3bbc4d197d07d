"""Steps of several devices, worked by hand: what one sends, it gets from another at the same time."""

import re
from dataclasses import replace
from math import inf

import pytest
from machines import round_machine

from schedc.compiler.pipeline import Request, build
from schedc.cost.links import Links, Network
from schedc.cost.report import predict
from schedc.cost.simulate import Stuck, simulate
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from tests.reference.small_specs import small_spec

DECLARED = """
program talk {
  devices 4
  pool work rows=32
  buffer mine in work rows=8 slots=1 align=8 at 0
  buffer theirs in work rows=24 slots=1 align=8 at 8
  semaphore sent[1] dma
  semaphore arrived[2] dma
  semaphore ready[1] regular
"""
TO_THE_SIBLING = "remote.start mine[0 +: 8] -> theirs[0 +: 8] on rank ^ 1 sent sent signals arrived"
TO_ANOTHER_CHIP = "remote.start mine[0 +: 8] -> theirs[%d +: 8] on rank ^ %d sent sent signals arrived[1]"


def step(*lines: str) -> float:
    return simulate(parse_program("\n".join([DECLARED, *lines, "}"])), round_machine()).step_ns


def test_a_barrier_takes_the_latency_of_the_farthest_device() -> None:
    assert step("barrier") == 400


def test_each_link_has_its_latency_and_its_rate() -> None:
    """Issued at 10; a row takes 10 ns to the sibling, and 20 to another chip; then 5 for the wait that was blocked."""
    assert step(TO_THE_SIBLING, "wait arrived rows=8") == 10 + 8 * 10 + 200
    assert step(TO_ANOTHER_CHIP % (8, 2), "wait arrived[1] rows=8") == 10 + 8 * 20 + 400


def test_what_goes_over_one_link_goes_one_after_the_other() -> None:
    both = (TO_ANOTHER_CHIP % (8, 2), TO_ANOTHER_CHIP % (16, 3))
    assert step(*both, "wait arrived[1] rows=16") == 10 + 2 * 8 * 20 + 400
    assert step(*both, "wait sent rows=16") == 10 + 2 * 8 * 20
    assert step(TO_THE_SIBLING, both[0], "wait arrived[1] rows=8") == 20 + 8 * 20 + 400


def test_a_signal_to_a_peer_comes_from_one_too() -> None:
    assert step("signal ready amount=1 on rank ^ 1", "await ready amount=1") == 4 + 200


def test_what_is_sent_is_counted_and_the_rate_is_no_part_of_the_latency_bound() -> None:
    program = parse_program("\n".join([DECLARED, TO_ANOTHER_CHIP % (8, 2), "wait arrived[1] rows=8", "}"]))
    found = predict(program, parse_target("tpu7x"), machine=round_machine())
    assert found.bytes_sent == 8 * 512
    assert found.bounds["latency"].time_us == 0.4


CUBE = Network(2, 200.0, 50.0, 400.0, 30.0, 25.0, 100.0, topology=(4, 4, 4), host=(2, 2, 1))
LINE = replace(CUBE, topology=(2, 2, 4))


def test_a_hop_more_is_a_latency_more_and_a_ring_is_gone_around_the_shorter_way() -> None:
    """Chips of a cube: 1 is one hop in x, 3 one in x and one in y, 4 two in x, 5 three or, backwards, one."""
    links = Links(CUBE)
    assert [links.latency(links.route(0, 2 * chip)) for chip in (0, 1, 3, 4, 5)] == [200, 400, 430, 430, 400]


def test_a_line_has_no_way_around() -> None:
    """2x2x4 is four hosts in a line: the farthest chip is a hop in x, one in y and three in z away."""
    links = Links(LINE)
    assert links.latency(links.route(0, 2 * 15)) == 400 + 4 * 30


def test_devices_of_a_chip_and_messages_that_go_through_it_share_its_links() -> None:
    """100 bytes a ns, two devices, 5000 bytes: 100 ns a hop of the link, and 200 of the route of 25 bytes a ns."""
    links = Links(replace(LINE, route_bytes_per_ns=inf))
    one, diagonal = links.route(0, 2), links.route(0, 6)
    assert links.send(one, 5000, 0.0) == (100, 500)
    assert links.send(diagonal, 5000, 0.0) == (200, 630), "its hop in x comes behind the first message"
    assert Links(LINE).send(one, 5000, 0.0) == (200, 600), "the route alone is slower"


def test_an_exchange_of_all_with_all_along_a_line_loads_its_middle_link_with_four_messages() -> None:
    """Four chips: the middle link carries what two send to two, each way."""
    links = Links(replace(LINE, route_bytes_per_ns=inf, devices_per_chip=1, host=(2, 2, 1)))
    ends = [links.send(links.route(0, 4 * distance), 1000, 0.0)[0] for distance in (1, 2, 3)]
    assert ends[-1] == pytest.approx(4 * 1000 / 100)


def test_a_signal_takes_nothing_and_goes_behind_the_messages_of_its_lane() -> None:
    links = Links(LINE)
    assert links.send(links.route(0, 1), 500, 0.0) == (10, 210)
    assert links.send(links.route(0, 1), 0, 0.0) == (10, 210)
    assert links.send(links.route(0, 1), 0, 20.0) == (20, 220)


def test_chips_are_numbered_host_by_host() -> None:
    """4x4 chips in hosts of 2x2: chip 4 is the first of the second host, two hops in x from chip 0."""
    links = Links(Network(1, link_latency_ns=10.0, hop_ns=1.0, topology=(4, 4), host=(2, 2)))
    assert [links.route(0, chip).hops for chip in (1, 2, 3, 4, 6, 8)] == [1, 1, 2, 2, 3, 2]


def test_devices_that_take_turns_cannot_be_simulated() -> None:
    message = "nothing is in flight; all devices are taken to do the same"
    with pytest.raises(Stuck, match=re.escape(message)):
        step("when rank == 1 {", TO_THE_SIBLING, "}", "wait arrived rows=8")


def test_a_step_on_eight_devices_reads_an_eighth_of_the_streamed_bytes_on_each_and_takes_longer_than_those() -> None:
    def predicted(devices: int):
        target = parse_target("tpu7x:2x2x1", devices)
        spec = small_spec({"heads": 32, "kv_heads": 8, "head_dim": 128}, {"width": 8192}, hidden=2048, vocab=32768)
        _, program = build(Request(spec, target, StepShape(1, 64, devices=devices)))
        return predict(program, target)

    one, eight = predicted(1), predicted(8)
    assert eight.hbm_bytes_read == pytest.approx(one.hbm_bytes_read / 8, rel=0.05)
    assert one.bytes_sent == 0 < eight.bytes_sent
    assert one.bounds["hbm"].time_us / 8 < eight.step_us < one.step_us

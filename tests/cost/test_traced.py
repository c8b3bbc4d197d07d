"""What a traced simulation keeps, and what it may not change."""

from dataclasses import replace

from machines import round_machine
from test_links import DECLARED, TO_THE_SIBLING
from test_simulate import THREE_TRANSFERS

from schedc.cost.simulate import simulate
from schedc.cost.traced import simulate_traced
from schedc.ir.text_parse import parse_program


def test_a_trace_changes_nothing_and_says_what_ended_every_stall() -> None:
    """The first transfer is there at 300 and the second at 310; the wait for the first stalls, the other does not."""
    program, machine = parse_program(THREE_TRANSFERS), round_machine()
    traced = simulate_traced(program, machine)
    assert replace(traced, trace=None) == simulate(program, machine)
    assert traced.trace is not None
    waits = [e for e in traced.trace.executed if e.name == "wait"]
    assert [e.cause and (e.cause.name, e.cause.issued, e.cause.began, e.cause.ended) for e in waits] == [
        ("w -> a", 10, 110, 300),
        None,
        ("c -> out", 415, 495, 595),
    ]
    assert [e.name for e in traced.trace.executed] == [
        "w -> a", "w -> b", "wait", "zero", "wait", "zero", "c -> out", "wait",
    ]  # fmt: skip
    assert [e.reads for e in traced.trace.executed][:2] == [(("w", 0, 8),), (("w", 8, 16),)]
    assert traced.trace.executed[5].writes == (("work", 16, 24),)


def test_what_a_peer_sends_is_written_where_the_peer_says() -> None:
    """Each sends its rows to the place of its own rank: device 0 gets them at that of device 1."""
    sent = "remote.start mine[0 +: 8] -> theirs[rank * 8 +: 8] on rank ^ 1 sent sent signals arrived"
    program = parse_program("\n".join([DECLARED.replace("devices 4", "devices 2"), sent, "wait arrived rows=8", "}"]))
    traced = simulate_traced(program, round_machine())
    assert traced.trace is not None
    start, wait = traced.trace.executed
    assert start.reads == (("work", 0, 8),)
    assert start.writes == (("work", 8 + 8, 8 + 16),)
    assert wait.cause is start.flight
    assert (wait.cause.issued, wait.cause.began, wait.cause.latency, wait.cause.ended) == (10, 10, 200, 290)


def test_what_late_peers_send_comes_later_and_what_leaves_here_does_not() -> None:
    def step(*lines: str) -> float:
        late = replace(round_machine(), skew_ns=70.0)
        return simulate(parse_program("\n".join([DECLARED, *lines, "}"])), late).step_ns

    assert step("barrier") == 400 + 70
    assert step(TO_THE_SIBLING, "wait arrived rows=8") == 10 + 8 * 10 + 200 + 70
    assert step(TO_THE_SIBLING, "wait sent rows=8") == 10 + 8 * 10
    assert step("signal ready amount=1 on rank ^ 1", "await ready amount=1") == 4 + 200 + 70

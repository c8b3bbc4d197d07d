"""A transfer is followed from what allowed it to its first use, in a program worked by hand and in all models."""

import pytest

from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.inspect.flow import flow_of
from schedc.inspect.reasons import reason, where
from schedc.ir.program import Compute, RemoteStart, Start, Wait
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.inspect.programs import ring


def test_every_transfer_of_a_small_program():
    flow = ring()
    times = [(round(m.issued_ns), round(m.ended_ns), round(m.stall_ns)) for m in flow.moved]
    assert times == [(10, 247, 247 - 80), (73, 310, 0), (308, 508, 508 - 381), (568, 748, 748 - 573)]
    first, chosen, refill, store = flow.moved
    assert [None if m.freed is None else where(flow, m.freed) for m in flow.moved] == [
        None,
        None,
        "zero of add",
        "zero of last",
    ]
    assert chosen.known is not None and where(flow, chosen.known) == "chosen is set in choose"
    assert first.known is refill.known is None
    uses = [None if m.use is None else (flow.executed[m.use].phase, flow.executed[m.use].iteration) for m in flow.moved]
    assert uses == [("add", (("t", 0),)), ("add", (("t", 1),)), ("last", ()), None]
    assert store.idle_ns == 568 - 508
    assert chosen.idle_ns == 0.0, "the first is still on its way"


def test_reasons_say_what_allowed_it_and_who_needs_it():
    flow = ring()
    said = [reason(flow, [moved]) for moved in flow.moved]
    assert said[0].startswith(
        "issued at the beginning of prologue; into a slot that nothing used before; the core waits"
    )
    assert "address known since chosen is set in choose" in said[1]
    assert said[2].startswith("issued after zero of add, which frees the slot; ")
    assert said[3].startswith("issued at the beginning of store; written by zero of last; the core waits")


@pytest.mark.parametrize(("model", "devices"), [("smollm2-135m", 1), ("gpt-oss-20b", 2), ("kimi-k3-mini", 8)])
def test_a_flow_agrees_with_the_simulation(model: str, devices: int):
    """The same operations as often, every stall once, every awaited transfer with its wait and after its arrival."""
    target = parse_target("tpu7x:2x2x1", devices)
    program = schedule(load_spec(model), StepShape(2, 1024, devices=devices), target).program
    machine = Machine.of(target)
    flow = flow_of(program, machine)
    events = simulate(program, machine, events=True).events
    ops = flow.numbered.ops
    for kinds, lanes in (((Start, RemoteStart), ("hbm", "link")), ((Compute,), ("core",))):
        executed = [done.op for done in flow.executed if isinstance(ops[done.op].op, kinds)]
        assert sorted(executed) == sorted(event.op for event in events if event.lane in lanes)
    local = [m for m in flow.moved if isinstance(ops[flow.executed[m.at].op].op, Start)]
    assert local and all(m.wait is not None for m in local)
    for moved in local:
        assert moved.wait is not None
        assert flow.executed[moved.wait].signals == flow.executed[moved.at].signals
        assert isinstance(ops[flow.executed[moved.wait].op].op, Wait)
        assert flow.executed[moved.wait].ended_ns >= moved.ended_ns - 1e-6
        assert moved.freed is None or flow.executed[moved.freed].ended_ns <= moved.issued_ns + 1e-6
    stalls = sum(e.ended_ns - e.began_ns for e in events if e.lane == "stall" and isinstance(ops[e.op].op, Wait))
    attributed = sum(m.stall_ns for m in flow.moved)
    assert attributed <= stalls + 1e-3
    if devices == 1:
        assert attributed == pytest.approx(stalls)

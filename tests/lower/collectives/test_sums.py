"""The sums of a decode step over its devices: proven for every algorithm and cut, and what of them can be chosen."""

from __future__ import annotations

import pytest

from schedc.compiler.interpret import addressed, interpret
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.shrink import shrink
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.ir.expr import Const, Counter, evaluate
from schedc.ir.program import Loop, Program, RemoteStart, walk
from schedc.ir.verify import verify
from schedc.lower.collectives.choose import communication_for
from schedc.lower.collectives.communication import Communication
from schedc.lower.collectives.group import topology_of
from schedc.lower.collectives.registry import ALGORITHMS
from schedc.lower.collectives.sums import Cut, LoopCuts, Sums
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.reference.small_specs import small_spec

TARGET = parse_target("tpu7x", 4)
SPEC = small_spec(mixer={"heads": 8, "kv_heads": 2}, feed_forward={"width": 1000}, hidden=320)


def talk(algorithm: str, wire: str = "f32") -> Communication:
    return Communication(topology_of(TARGET), algorithm, wire)  # type: ignore[arg-type]


def program(communication: Communication, spec: ModelSpec = SPEC, **settings: float) -> Program:
    shape = StepShape(2, 64, devices=4, communication=communication)
    return build(Request(spec, TARGET, shape, "ring", {"depth": 3, "slot_mib": 0.05, **settings}))[1]


@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_step_on_four_devices_is_proven(algorithm: str, whole: int) -> None:
    made = program(talk(algorithm, "bf16"), whole_sums=whole)
    assert verify(made, limits_of(TARGET)).refusals == ()
    sent_in_a_tile = any(
        isinstance(op, Loop) and op.counter == "tile_down" and any(isinstance(o, RemoteStart) for o in walk(op.body))
        for op in walk(made.body)
    )
    assert sent_in_a_tile == (not whole)


def test_sums_of_one_cut_alternate_from_loop_to_loop() -> None:
    """Loops of 3 layers with 2 sums of one cut and one of another, then of 2 layers with one sum of the first."""
    cut, other = Cut(16), Cut(8, pieces=4)
    sums = Sums((LoopCuts(3, (cut, other, cut)), LoopCuts(2, (cut,))), 4, talk("one_shot"))
    order: dict[str, list[int]] = {}
    for number, trips in ((0, 3), (1, 2)):
        for trip in range(trips):
            for summed in sums.of_loop(number):
                start = next(o for o in summed.start("y", Counter("l"), Const(0)) if hasattr(o, "operands"))
                slot = evaluate(start.operands[1].region.slot, lambda _, trip=trip: trip, lambda *_: 0)
                order.setdefault(summed.collective.exchanged.name, []).append(slot)
    assert order == {"sum": [0, 1] * 4, "sum_1": [0, 4, 0]}


@pytest.mark.slow
@pytest.mark.kernel
@pytest.mark.parametrize("mode", ["eager", "on_wait"])
def test_a_step_on_two_devices_agrees_with_the_reference(mode: str) -> None:
    target = parse_target("tpu7x", 2)
    shape = StepShape(2, 64, devices=2, communication=Communication(topology_of(target), "two_phase"))
    small = shrink(Request(SPEC, target, shape, "ring", {"depth": 3, "slot_mib": 0.05}), "f32")
    run = interpret(small, addressed(small, target), mode, 300)
    assert run.problems == ()
    assert 0 < run.logits < run.logits_limit


def test_tiles_on_their_way_while_the_next_is_made_shorten_the_predicted_step() -> None:
    spec, target = load_spec("llama-3.1-8b"), parse_target("tpu7x", 8)
    steps = {}
    for whole in (0, 1):
        shape = StepShape(8, 4096, devices=8, communication=talk("one_shot", "bf16"))
        made = build(Request(spec, target, shape, "ring", {"whole_sums": whole}))[1]
        steps[whole] = simulate(made, Machine.of(target)).step_ns
    assert steps[0] < 0.95 * steps[1]


def test_the_algorithm_is_the_quickest_unless_it_is_named() -> None:
    eight = parse_target("tpu7x", 8)
    assert communication_for(4096, 8, eight).all_reduce == "one_shot"
    assert communication_for(8192, 16, eight).all_reduce == "two_phase"
    assert communication_for(4096, 8, eight, "ring", "bf16") == Communication(topology_of(eight), "ring", "bf16")
    with pytest.raises(UserError, match=r"no collective algorithm is called 'rng'.*did you mean ring"):
        communication_for(4096, 8, eight, "rng")
    with pytest.raises(UserError, match="one device has nobody to talk to; give --devices"):
        communication_for(4096, 8, parse_target("tpu7x"), "ring")
    with pytest.raises(UserError, match="--wire bf16: one device has nobody to talk to"):
        communication_for(4096, 8, parse_target("tpu7x"), wire="bf16")

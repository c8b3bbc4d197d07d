"""Why a step is long, why a model does not fit, why a transfer is not earlier: found by trying, and said in numbers."""

from dataclasses import replace

import pytest

from schedc.compiler.pipeline import Request, build, limits_of, with_addresses
from schedc.cost.report import predict
from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.inspect.explain.fit import explain_fit
from schedc.inspect.explain.moving import Movable, without_addresses
from schedc.inspect.explain.step import ADVICE, explain_step
from schedc.inspect.explain.transfer import explain_transfer, find_transfers
from schedc.inspect.subject import Subject, of_request
from schedc.ir.program import Compute, Loop, Phase, RemoteStart, Start, When, walk
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_op
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.inspect.programs import RING

TARGET = parse_target("tpu7x")


def request(model: str = "smollm2-135m", rows: int = 1, devices: int = 1, **settings: float) -> Request:
    target = parse_target("tpu7x", devices)
    return Request(load_spec(model), target, StepShape(rows, 1024, devices=devices), settings=settings)


@pytest.fixture(scope="module")
def smol() -> Subject:
    return of_request(request())


def of_text(smol: Subject, text: str) -> Subject:
    return replace(smol, program=with_addresses(without_addresses(parse_program(text)), TARGET))


def test_a_start_moves_up_past_neighbours_into_phases_before_and_past_whole_loops():
    program = parse_program(RING)
    ops = list(walk(program.body))
    number = next(n for n, op in enumerate(ops) if isinstance(op, Start) and op.source.storage == "sum")
    passed = [[print_op(ops[n]).split("(")[0] for n in spot.passed] for spot in Movable(program, number).spots()]
    assert passed[0] == ["compute zero"] and passed[1] == ["compute zero", "wait arrived rows=8"]
    assert any(name.startswith("loop t") for name in passed[2]), "the loop as a whole"
    assert passed[-1][-1].startswith("start w[0 +: 8]")


def test_every_place_is_the_same_program_with_the_start_there():
    program = parse_program(RING)
    for number, op in enumerate(walk(program.body)):
        if isinstance(op, Start):
            movable = Movable(program, number)
            for spot in movable.spots():
                moved = movable.moved_to(spot)
                kept = [print_op(o) for o in walk(moved.body) if not isinstance(o, (When, Loop, Phase))]
                assert sorted(kept) == sorted(
                    print_op(o) for o in walk(program.body) if not isinstance(o, (When, Loop, Phase))
                )
                assert kept.index(print_op(op)) <= [
                    print_op(o) for o in walk(program.body) if not isinstance(o, (When, Loop, Phase))
                ].index(print_op(op))


def test_a_guarded_start_keeps_its_guard():
    program = parse_program(RING)
    number = next(n for n, op in enumerate(walk(program.body)) if isinstance(op, Start) and "16" in print_op(op))
    movable = Movable(program, number)
    moved = movable.moved_to(next(movable.spots()))
    guards = [op for op in walk(moved.body) if isinstance(op, When)]
    assert len(guards) == 1 and [print_op(op) for op in guards[0].body] == [print_op(list(walk(program.body))[number])]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("kv_new -> kv", "data", "it moves what is made by merge_newest of attend"),
        ("rope", "slot", "its slot is still used by zero of fetch"),
        ("kv -> kv_new", "edge", "the loop over layer begins; earlier is in the iteration before"),
    ],
)
def test_what_refuses_a_transfer_is_named(smol: Subject, name: str, kind: str, words: str):
    found = [explain_transfer(smol, number) for number in find_transfers(smol, name)]
    assert [one.constraint.kind for one in found] == [kind] * len(found)
    assert words in found[0].constraint.what and any(words in line for line in found[0].answer)
    assert found[0].proven


def test_an_address_that_is_chosen_holds_a_transfer(smol: Subject):
    subject = of_text(smol, RING)
    (first, chosen, _) = find_transfers(subject, "w")
    found = explain_transfer(subject, chosen)
    assert (found.constraint.kind, found.steps) == ("address", 0)
    assert found.constraint.what == "its address is known only after chosen is set in choose"
    assert explain_transfer(subject, first).constraint.kind == "edge"


LATE = RING.replace(
    "    start w[chosen[0] * 8 +: 8] -> tile<1>[0 +: 8] signals arrived[1]\n", ""
).replace(
    "  loop t < 2 {\n    phase add {\n",
    "  phase wait_first {\n    compute zero(out: write sum[0 +: 8])\n    compute zero(out: update sum[0 +: 8])\n"
    "    start w[8 +: 8] -> tile<1>[0 +: 8] signals arrived[1]\n  }\n  loop t < 2 {\n    phase add {\n",
)  # fmt: skip


def test_a_transfer_that_nothing_holds_moves_up_to_the_beginning(smol: Subject):
    subject = of_text(smol, LATE)
    _, late, _ = find_transfers(subject, "w")
    found = explain_transfer(subject, late)
    assert found.steps >= 3 and found.constraint.kind == "edge"
    spots = list(Movable(subject.program, late).spots())
    moved = with_addresses(Movable(subject.program, late).moved_to(spots[found.steps - 1]), TARGET)
    assert verify(moved, limits_of(TARGET)).proven
    assert found.moved_us == round(simulate(moved, subject.machine).step_ns / 1e3, 3)
    assert found.step_us == round(simulate(subject.program, subject.machine).step_ns / 1e3, 3)


TWICE = """
program twice {
  pool work rows=16
  buffer tile in work rows=8 slots=1 align=8
  buffer sum in work rows=8 slots=1 align=8
  hbm w rows=16 weight
  hbm out rows=8 output
  semaphore arrived[1] dma
  semaphore stored[1] dma
  phase one {
    start w[0 +: 8] -> tile[0 +: 8] signals arrived
    compute zero(out: write sum[0 +: 8])
    wait arrived rows=8
    start w[8 +: 8] -> tile[0 +: 8] signals arrived
    wait arrived rows=8
    compute zero(x: read tile[0 +: 8], out: update sum[0 +: 8])
    start sum[0 +: 8] -> out[0 +: 8] signals stored
    wait stored rows=8
  }
}
"""


def test_what_only_the_proof_sees_is_refused_by_the_proof(smol: Subject):
    """Nothing reads what the first transfer brings, but while it is on its way the second must not write there."""
    subject = of_text(smol, TWICE)
    _, second = find_transfers(subject, "w")
    found = explain_transfer(subject, second)
    assert (found.constraint.kind, found.steps) == ("proof", 0)
    assert found.constraint.what.startswith("the proof refuses it there (")
    unproven = explain_transfer(subject, second, prove=False)
    assert unproven.steps > 0 and not unproven.proven and "proof was not asked" in " ".join(unproven.answer)


def test_a_transfer_is_found_by_line_by_source_and_by_part(smol: Subject):
    numbered = smol.flow.numbered
    (number,) = find_transfers(smol, "kv_new")
    assert find_transfers(smol, str(numbered.lines[number])) == [number] == find_transfers(smol, "kv_new -> kv")
    for name, message in (("none", "no transfer is called 'none'; there are w_qkv"), ("1", "line 1 .* is no transfer")):
        with pytest.raises(UserError, match=message):
            find_transfers(smol, name)


def test_what_is_sent_to_a_peer_waits_for_what_makes_it():
    subject = of_request(request("gpt-oss-20b", devices=8))
    number = _first_sent(subject)
    found = explain_transfer(subject, number, prove=False)
    assert (found.constraint.kind, found.steps) == ("edge", 0) and "the loop over sum_peer" in found.constraint.what
    assert found.chain[0].startswith("what it needs is free or made after pack_wire of o_0_0")


def _first_sent(subject: Subject) -> int:
    return next(n for n, op in enumerate(walk(subject.program.body)) if isinstance(op, RemoteStart))


def test_a_step_is_explained_by_the_numbers_of_its_prediction(smol: Subject):
    found, cost = explain_step(smol), predict(smol.program, smol.target)
    assert found.cost == cost
    assert sum(cost.idle_causes.values()) == pytest.approx(cost.hbm_idle_us, abs=0.05)
    assert found.waited == tuple(sorted(found.waited, key=lambda one: -one.stall_us)) and found.waited[0].stall_us > 1.0
    text = "\n".join(found.answer)
    bound = cost.bounds[cost.binding]
    assert f"the step takes {cost.step_us:,.1f} µs" in text and f"shorter than {bound.time_us:,.1f} µs" in text
    assert f"for {found.waited[0].transfer} in {found.waited[0].phase}" in text and "on the critical path" in text
    assert cost.critical_path is not None
    most = max(cost.critical_path.causes, key=lambda cause: cost.critical_path.causes[cause])
    assert f"% of the critical path is {most}: {ADVICE[most]}" in text and set(cost.critical_path.causes) <= set(ADVICE)


def test_what_fits_is_said_with_what_is_left_and_what_fills_it():
    found = explain_fit(request())
    _, program = build(request())
    assert found.fits and found.vmem_bytes == sum(pool.rows for pool in program.pools) * 512
    sizes = {buffer.name: buffer.rows * buffer.slots * 512 for buffer in program.buffers}
    assert all(sizes[one.name] == one.bytes for one in found.vmem)
    live = sum(one.bytes for one in found.vmem)
    assert max(sizes.values()) < live <= found.vmem_bytes and found.vmem[0].name == "weights_slot"
    assert sum(one.bytes for one in found.hbm) == found.hbm_bytes < found.hbm_limit
    assert any(isinstance(op, Compute) for op in walk(program.body)) and found.fullest


def test_what_does_not_fit_is_said_with_what_would():
    found = explain_fit(request(slot_mib=16.0, depth=64))
    assert not found.fits and "does not fit the VMEM" in found.answer[0]
    assert any("would fit: --set" in line for line in found.answer)

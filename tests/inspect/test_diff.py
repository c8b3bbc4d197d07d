"""What differs between two schedules: where transfers start, rings, tiles, order, and the times that go with it."""

from dataclasses import replace

import pytest

from schedc.compiler.pipeline import Request
from schedc.cost.report import predict
from schedc.inspect.diff import diff
from schedc.inspect.diff_data import diff_data
from schedc.inspect.subject import Subject, of_request
from schedc.ir.program import Loop, Phase
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target


def subject(policy: str = "ring", **settings: float) -> Subject:
    shape = StepShape(1, 1024)
    return of_request(Request(load_spec("smollm2-135m"), parse_target("tpu7x"), shape, policy, settings))


@pytest.fixture(scope="module")
def ring() -> Subject:
    return subject()


def test_the_same_program_differs_in_nothing(ring: Subject):
    found = diff(ring, subject())
    assert found.same_program and found.is_empty


def test_another_policy_issues_elsewhere_and_takes_other_times(ring: Subject):
    late = subject("just_in_time")
    found = diff(ring, late)
    assert ("policy", "ring", "just_in_time") in found.settings
    moved = {one.transfer: one for one in found.moved}["w_qkv -> weights_slot"]
    assert moved.first == {"prologue": 2, "up": 28} or "qkv" not in moved.first
    assert moved.second == {"qkv": 30}
    figures = {figure.name: figure for figure in found.figures}
    costs = [predict(s.program, s.target) for s in (ring, late)]
    assert (figures["step"].first, figures["step"].second) == (costs[0].step_us, costs[1].step_us)
    assert sum(phase.change_us for phase in found.phases) == pytest.approx(figures["step"].change, abs=0.1)
    assert figures["VMEM peak"].change < 0 < figures["core waits"].change


def test_slots_and_tiles_are_told_apart_from_addresses(ring: Subject):
    found = diff(ring, subject(depth=4, slot_mib=1.0))
    buffers = {change.buffer: change for change in found.buffers}
    weights = buffers["weights_slot"]
    assert weights.first is not None and weights.second is not None and not weights.only_address
    assert (weights.first[1], weights.second[1]) == (8, 4)
    tiles = {change.transfer: change for change in found.tiled}["w_up -> weights_slot"]
    assert max(tiles.second) < max(tiles.first) <= 2 * 2**20
    assert ("setting depth", "", "4") in found.settings


def test_phases_that_stand_elsewhere_are_named(ring: Subject):
    body = list(ring.program.body)
    at = next(place for place, op in enumerate(body) if isinstance(op, Loop))
    loop = body[at]
    assert isinstance(loop, Loop)
    phases = [op for op in loop.body if isinstance(op, Phase)]
    swapped = (*phases[:1], phases[2], phases[1], *phases[3:])
    body[at] = replace(loop, body=tuple(swapped))
    names = [phase.name for phase in phases]
    from schedc.inspect.diff import _reordered
    from schedc.inspect.numbered import Numbered

    other = replace(ring.program, body=tuple(body))
    found = _reordered(Numbered(ring.program), Numbered(other))
    assert len(found) == 1 and found[0] in (names[1], names[2])


def test_starts_are_marked_where_the_other_has_fewer(ring: Subject):
    late = subject("just_in_time")
    found = diff(ring, late)
    entries = {entry[0]: entry for entry in diff_data(found, ring.program, late.program)["moved"]}
    assert len(entries) == len(found.moved) > 0
    for one in found.moved:
        marked: tuple[list[int], list[int]] = (entries[one.transfer][3], entries[one.transfer][4])
        for side, own, other, operations in ((ring, one.first, one.second, marked[0]),
                                             (late, one.second, one.first, marked[1])):  # fmt: skip
            placed = [side.flow.numbered.ops[number] for number in operations]
            assert {p.phase for p in placed} == {phase for phase in own if own[phase] > other.get(phase, 0)}
    assert diff_data(diff(ring, ring), ring.program, ring.program)["moved"] == []

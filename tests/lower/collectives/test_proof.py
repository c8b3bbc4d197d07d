"""Every algorithm, kind and wire is proven safe with any skew between devices, and a fault in it is refused."""

from __future__ import annotations

import re

import pytest

from schedc.errors import UserError
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_program
from schedc.ir.verify import Limits, verify
from schedc.lower.collectives.group import Group, Topology
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.collectives.registry import make_collective
from tests.lower.collectives.programs import TOPOLOGY, Case, cases, program

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=3831)
GROUPS = (
    Case("one_shot", "all_reduce", 8, size=4),
    Case("one_shot", "all_gather", 8, size=2, stride=4),
    Case("two_phase", "all_reduce", 6, "bf16", size=3, stride=2),
    Case("one_shot", "reduce_scatter", 6),
    Case("hierarchical", "all_reduce", 16, size=8, stride=2),
    Case("ring", "all_reduce", 6, size=3),
    Case("one_shot", "exchange", 8, "bf16", stride=4),
    Case("one_shot", "all_reduce", 4, "bf16", pieces=3),
    Case("two_phase", "all_reduce", 4, pieces=2),
    Case("hierarchical", "all_reduce", 4, pieces=2),
    Case("ring", "all_reduce", 4, pieces=2),
    Case("hierarchical", "all_reduce", 4, "bf16", rows=40, used=3),
    Case("two_phase", "all_reduce", 4, "bf16", rows=40, used=3),
    Case("two_phase", "all_reduce", 8, pieces=2, rows=40, used=1),
)
"""Groups of some of the devices, of numbers that are not a power of two, and occurrences in pieces."""
ONE_SLOT = {("two_phase", "all_reduce"), ("ring", "all_reduce")}


def rules(made: Program) -> set[str]:
    return {refusal.rule for refusal in verify(made, LIMITS).refusals}


def named(case: Case) -> str:
    return f"{case.algorithm}-{case.kind}-{case.wire}-{case.devices}-{case.pieces}"


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_every_algorithm_kind_and_wire_is_proven(devices: int) -> None:
    assert {named(case): rules(program(case)) for case in cases(devices) if rules(program(case))} == {}


@pytest.mark.slow
def test_every_algorithm_is_proven_on_32_devices() -> None:
    wide = [c for c in cases(32) if c.wire == "bf16" and (c.algorithm != "ring" or c.kind == "reduce_scatter")]
    assert {named(case): rules(program(case)) for case in wide if rules(program(case))} == {}


@pytest.mark.parametrize("case", GROUPS, ids=named)
def test_groups_of_some_of_the_devices_and_pieces_are_proven(case: Case) -> None:
    assert rules(program(case)) == set()


@pytest.mark.parametrize("case", [case for case in cases(4) if case.wire == "bf16"], ids=named)
def test_occurrences_that_do_not_alternate_are_refused_where_two_slots_are_used(case: Case) -> None:
    if (case.algorithm, case.kind) in ONE_SLOT:
        assert all(buffer.slots == 1 for buffer in case.collective.declarations().buffers)
    else:
        assert "write-while-arriving" in rules(program(case, parities=(0, 0)))
        assert rules(program(case, parities=(1, 0))), "the last of the loop and the first of the next have one parity"


def without(text: str, pattern: str) -> Program:
    """The program without the first line that matches."""
    changed, count = re.subn(rf"^ *{pattern}.*\n", "", text, count=1, flags=re.MULTILINE)
    assert count == 1, f"nothing matches {pattern}"
    return parse_program(changed)


@pytest.mark.parametrize("case", [case for case in cases(4) if case.wire == "bf16"], ids=named)
def test_a_missing_wait_is_refused(case: Case) -> None:
    text = print_program(program(case))
    assert rules(without(text, r"wait sums\w*_arrived"))
    assert rules(without(text, r"wait sums\w*_sent"))
    assert "peer-not-started" in rules(without(text, "barrier"))


@pytest.mark.parametrize("case", [case for case in cases(4) if case.wire == "f32"], ids=named)
def test_a_message_to_the_wrong_rows_is_refused(case: Case) -> None:
    """Eight rows further on: over what another member sends, over the own block, or past the buffer."""
    text = print_program(program(case))
    sends = re.search(r"remote\.start .* -> (\S+)\[(.+) \+: (\d+)\]", text)
    assert sends is not None
    wrong = sends.group(0).replace(f"-> {sends[1]}[{sends[2]} +:", f"-> {sends[1]}[{sends[2]} + 8 +:")
    assert rules(parse_program(text.replace(sends.group(0), wrong, 1)))


def test_what_cannot_be_is_refused_with_what_to_do() -> None:
    four = Group(4, 4)
    with pytest.raises(UserError, match=r"ringg.*there are one_shot.*did you mean ring"):
        make_collective("ringg", Exchanged("a", "all_reduce", four, TOPOLOGY, 8))
    with pytest.raises(UserError, match=r"two_phase has no all_gather.*done by one_shot, hierarchical, ring"):
        make_collective("two_phase", Exchanged("a", "all_gather", four, TOPOLOGY, 8))
    with pytest.raises(UserError, match="groups of 3 devices"):
        Group(8, 3)
    with pytest.raises(UserError, match="between two devices, the group has 4"):
        Exchanged("a", "exchange", four, TOPOLOGY, 8)
    with pytest.raises(UserError, match="12 rows are not a positive multiple of 32"):
        Exchanged("a", "reduce_scatter", four, TOPOLOGY, 12)
    with pytest.raises(UserError, match="do not fill whole chips of 4"):
        Topology(4, 8).levels(Group(6, 6))

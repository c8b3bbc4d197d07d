"""What one operation uses, whatever kind it is, and where it stands."""

from __future__ import annotations

from schedc.ir.expr import Const, Counter, Element, Rank, add, elements
from schedc.ir.placed import placed
from schedc.ir.program import (
    Await,
    Barrier,
    Compute,
    Loop,
    Op,
    Operand,
    Phase,
    Region,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Wait,
    numbered,
    size,
    walk,
)
from schedc.ir.text_parse import parse_program
from schedc.ir.uses import (
    addresses,
    amount,
    completions,
    expressions,
    is_remote,
    operands,
    semaphores,
    transfer_name,
    values,
)

SLOT, PAGE = Counter("t"), Element("page", Rank())
HERE, THERE = Region("tile", 8, add(PAGE, 1), SLOT), Region("inbox", 8, Const(0), Rank())
SENT, ARRIVED = SemaphoreRef("sent", SLOT), SemaphoreRef("arrived", Const(1))
START, SEND = Start(HERE, THERE, ARRIVED), RemoteStart(HERE, THERE, Rank(), SENT, ARRIVED)
USE = Compute(
    "use", (Operand("x", "read", HERE), Operand("y", "update", THERE)), (("rows", PAGE),), (), (("n", "count"),)
)

PROGRAM = parse_program(
    """
    program nested {
      pool work rows=8
      buffer x in work rows=8 slots=1 align=8
      phase outer {
        loop t < 2 {
          phase inner {
            compute use(x: write x[0 +: 8])
          }
          compute use(x: read x[0 +: 8])
        }
      }
      barrier
    }
    """
)


def test_a_transfer_reads_its_source_and_writes_its_target() -> None:
    for op in (START, SEND):
        assert [(o.region, o.reads, o.writes) for o in operands(op)] == [(HERE, True, False), (THERE, False, True)]
        assert (transfer_name(op), amount(op)) == ("tile -> inbox", 8)


def test_what_is_updated_is_read_and_written() -> None:
    assert [(o.reads, o.writes) for o in operands(USE)] == [(True, False), (True, True)]


def test_a_copy_has_one_semaphore_for_both_ends_and_a_message_one_for_each() -> None:
    assert [(ref, o.region) for ref, o in completions(START)] == [(ARRIVED, HERE), (ARRIVED, THERE)]
    assert [(ref, o.region) for ref, o in completions(SEND)] == [(SENT, HERE), (ARRIVED, THERE)]
    assert [completions(op) for op in (Wait(ARRIVED, 8), Signal(ARRIVED), USE)] == [(), (), ()]
    assert (semaphores(START), semaphores(SEND)) == ((ARRIVED,), (SENT, ARRIVED))


def test_the_expressions_of_an_operation_are_addresses_values_semaphores_and_the_peer() -> None:
    own = (HERE.offset, HERE.slot, THERE.offset, THERE.slot)
    assert (addresses(USE), values(USE), expressions(USE)) == (own, (PAGE,), (*own, PAGE))
    assert expressions(SEND) == (*own, SENT.index, ARRIVED.index, Rank())
    assert expressions(Signal(SENT, 1, Rank())) == (SLOT, Rank())
    assert expressions(Signal(SENT)) == expressions(Await(SENT)) == (SLOT,)
    assert expressions(SetScalar("full", SLOT, PAGE)) == (SLOT, PAGE)
    assert expressions(Loop("t", PAGE, (USE,))) == (PAGE,)  # not those of what is in it
    assert [found.array for expr in expressions(SEND) for found in elements(expr)] == ["page"]


def test_messages_barriers_and_signals_to_peers_touch_other_devices() -> None:
    remote: tuple[Op, ...] = (SEND, Barrier(), Signal(SENT, 1, Rank()))
    local: tuple[Op, ...] = (START, Signal(SENT), Await(SENT), Wait(SENT, 1), USE)
    assert all(map(is_remote, remote)) and not any(map(is_remote, local))


def test_operations_are_numbered_as_they_are_walked() -> None:
    whole = list(walk(PROGRAM.body))
    assert PROGRAM.size == len(whole) == 6
    assert [number for number, _ in numbered(PROGRAM.body)] == [0, 5]
    for number, op in enumerate(whole):
        inside = op.body if isinstance(op, Phase | Loop) else ()
        assert all(whole[at] is inner for at, inner in numbered(inside, number + 1))
        assert size(op) == len(list(walk((op,))))


def test_an_operation_is_placed_in_its_innermost_phase_and_all_blocks_around_it() -> None:
    found = list(placed(PROGRAM.body))
    assert [place.op for place in found] == list(walk(PROGRAM.body))
    assert [place.phase for place in found] == ["outer", "outer", "inner", "inner", "outer", ""]
    assert [len(place.around) for place in found] == [0, 1, 2, 3, 2, 0]

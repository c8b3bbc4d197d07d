"""`--print-after`, `--verify-each` and `--time-passes`: what a user may see of the passes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from schedc.ir.program import Phase, Wait
from schedc.ir.text_parse import parse_program

from .conftest import Command, Said, refused
from .test_check import EXAMPLE, RACE, written

COMPILE = ("compile", "smollm2-135m", "--context", "64", "--no-check", "-o", "k")


def timed(said: Said) -> list[str]:
    """The passes of the table, in its order."""
    lines = said.err.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("pass "))
    assert lines[start].split() == ["pass", "seconds", "share"]
    return [line.rsplit(maxsplit=3)[0].strip() for line in lines[start + 2 :] if line.strip()]


def test_the_program_is_printed_after_a_pass_on_stderr_as_it_can_be_read_back(schedc: Command) -> None:
    said = schedc(*COMPILE, "--print-after", "schedule", "--json")
    assert said.code == 0 and said.json()["proof"]["proven"]
    assert said.err.startswith("# after schedule: the model, in the order of the policy, as a program without")
    scheduled, emitted = parse_program(said.err), parse_program(Path("k/program.ir").read_text())
    assert {buffer.address for buffer in scheduled.buffers} == {None}
    assert scheduled.body == emitted.body


@pytest.mark.parametrize("name", ["allocate", "verify", "emit", "predict"])
def test_after_every_later_pass_the_program_is_the_one_of_the_kernel(schedc: Command, name: str) -> None:
    said = schedc(*COMPILE, "--print-after", name)
    assert said.err.partition("\n")[2] == Path("k/program.ir").read_text() + "\n"


def test_several_passes_are_printed_in_their_order(schedc: Command) -> None:
    said = schedc("check", written(EXAMPLE), "--print-after", "allocate", "--print-after", "parse")
    headings = [line for line in said.err.splitlines() if line.startswith("#")]
    assert headings == ["# after parse: the file as a program", "# after allocate: addresses for the buffers"]


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        (COMPILE, "schedule, allocate, verify, emit, predict"),
        (("check", "p.ir"), "parse, allocate, verify"),
        (("emit", "p.ir"), "parse, allocate, verify, emit"),
    ],
)
def test_an_unknown_pass_is_refused_with_those_there_are(schedc: Command, command: Sequence[str], passes: str) -> None:
    written(EXAMPLE)
    assert refused(schedc(*command, "--print-after", "allocat")) == (
        f"--print-after allocat: no pass is called that; did you mean allocate? passes: {passes}"
    )
    assert refused(schedc(*command, "--print-after", "x")) == (
        f"--print-after x: no pass is called that; passes: {passes}"
    )


def test_every_pass_is_timed(schedc: Command) -> None:
    said = schedc(*COMPILE, "--time-passes")
    assert timed(said) == ["schedule", "allocate", "verify", "emit", "predict", "total"]
    written(EXAMPLE)
    assert timed(schedc("check", "p.ir", "--time-passes")) == ["parse", "allocate", "verify", "total"]
    assert timed(schedc("emit", "p.ir", "--time-passes", "--verify-each", "--json")) == [
        "parse", "verify after parse", "allocate", "verify after allocate", "verify", "emit", "total",
    ]  # fmt: skip


def test_passes_that_were_run_are_timed_also_when_one_fails(schedc: Command) -> None:
    said = schedc("check", written(RACE), "--time-passes")
    assert said.code == 1 and timed_before_error(said) == ["parse", "allocate", "verify", "total"]


def timed_before_error(said: Said) -> list[str]:
    return timed(replace(said, err=said.err.partition("error: ")[0]))


def test_a_schedule_that_loses_a_wait_is_refused_after_the_pass_that_lost_it(
    schedc: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from schedc.compiler import pipeline

    def lossy(*arguments: object) -> pipeline.Schedule:
        made = schedule(*arguments)  # type: ignore[arg-type]
        body = tuple(
            replace(op, body=tuple(inner for inner in op.body if not isinstance(inner, Wait)))
            if isinstance(op, Phase)
            else op
            for op in made.program.body
        )
        assert body != made.program.body
        return replace(made, program=replace(made.program, body=body))

    schedule = pipeline.schedule
    monkeypatch.setattr(pipeline, "schedule", lossy)
    message = refused(schedc(*COMPILE, "--verify-each"), code=1)
    assert message.startswith("the proof refuses the program after pass schedule:\n")
    assert refused(schedc(*COMPILE), code=1).startswith("the proof refuses the schedule:\n")


def test_verify_each_proves_before_and_after_allocation(schedc: Command) -> None:
    assert schedc(*COMPILE, "--verify-each").code == 0
    message = refused(schedc("check", written(RACE), "--verify-each"), code=1)
    assert message.startswith("p.ir is refused after pass parse: 1 reason\n")
    clash = EXAMPLE.replace("slots=2", "slots=2 at 0").replace("total in work rows=8", "total in work rows=8 at 8")
    message = refused(schedc("check", written(clash.replace("pool work ", "pool work rows=16 ")), "--verify-each"), 1)
    assert message.startswith("p.ir is refused after pass parse: ") and "clobbered" in message

"""What the proof says of programs that were made to deceive it, and what the executor shows of those it accepts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from schedc.ir.execute import run, unfold
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)


def _cases() -> list[tuple[str, str, str]]:
    """(name, program, "proven" or the rules that refuse it)."""
    found = []
    for case in (Path(__file__).parent / "cases.txt").read_text().split("\n## ")[1:]:
        name, text = case.split("\n", 1)
        program, expected = text.split("\n=> ")
        found.append((name, program, expected.strip()))
    return found


CASES = _cases()


@pytest.mark.parametrize(("name", "text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_is_judged_rightly(name, text, expected):
    verdict = verify(parse_program(text), LIMITS)
    rules = ", ".join(sorted({refusal.rule for refusal in verdict.refusals}))
    assert (rules or "proven") == expected, verdict


@pytest.mark.parametrize(
    ("name", "text"), [case[:2] for case in CASES if case[2] == "proven"], ids=lambda value: value.split("\n")[0]
)
def test_what_is_accepted_runs_without_a_fault(name, text):
    program, rng = parse_program(text), random.Random(0)
    for seed in range(8):
        inputs = {
            s.name: rng.sample(range(s.low, s.high + 1), s.length)
            if s.distinct
            else [rng.choice((s.low, s.high, rng.randint(s.low, s.high))) for _ in range(s.length)]
            for s in program.scalars
            if s.role == "input"
        }
        assert run(unfold(program, inputs), seed) == []


@pytest.mark.parametrize("iterations", [40, 400])
def test_a_scalar_that_is_made_of_itself_again_and_again_stays_short(iterations):
    text = f"""
    program labels {{
      smem x[2] in 0..3 input
      smem v[1] in 0..3 local
      set v[0] = 0
      loop l < {iterations} {{
        set v[0] = min(max(v[0], x[l % 2]) + v[0] // 2, 3)
      }}
    }}
    """
    assert verify(parse_program(text), LIMITS).proven


def test_conditions_without_end_are_given_up(monkeypatch):
    from schedc.ir.verify import context

    monkeypatch.setattr(context, "_MOST_STEPS", 3)
    text = next(text for name, text, _ in CASES if name == "nest ranged")
    assert [refusal.rule for refusal in verify(parse_program(text), LIMITS).refusals] == ["too-long"]

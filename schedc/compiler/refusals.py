"""What is said when the proof refuses a program."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from schedc.compiler.proofs import keep, proven_before
from schedc.errors import CheckFailed
from schedc.ir.program import Program
from schedc.ir.verify import Limits, Refusal, Verdict, verify


class NotProven(CheckFailed):
    """The proof refuses a program. `verdict` says where and why, `after` is the pass if it was not the last one."""

    kind = "not-proven"

    def __init__(
        self, message: str, verdict: Verdict, after: str = "", refusals: list[dict[str, Any]] | None = None
    ) -> None:
        self.verdict, self.after = verdict, after
        dicts = [refusal_dict(refusal) for refusal in verdict.refusals] if refusals is None else refusals
        super().__init__(
            message, problems=[str(r) for r in verdict.refusals], details={"proven": False, "refusals": dicts}
        )


def prove(program: Program, limits: Limits, lines: tuple[int, ...] | None = None, after: str = "") -> Verdict:
    """Raises NotProven. `after` is the pass that gave the program, if it is not the last one.

    A program that took long to be proven is known again by its text, the limits and the code of the proof.
    """
    verdict = proven_before(program, limits) or _verified(program, limits, lines)
    if not verdict.proven:
        what = f"the program after pass {after}" if after else "the schedule"
        raise NotProven(f"the proof refuses {what}:\n{verdict}", verdict, after)
    return verdict


def _verified(program: Program, limits: Limits, lines: tuple[int, ...] | None) -> Verdict:
    began = perf_counter()
    verdict = verify(program, limits, lines)
    keep(program, limits, verdict, perf_counter() - began)
    return verdict


def refusal_dict(refusal: Refusal, column: int | None = None, other_column: int | None = None) -> dict[str, Any]:
    """What `--json` says of a refusal. Lines and columns count from 1; they are None where there is no place."""
    return {
        "rule": refusal.rule,
        "what": refusal.what,
        "repair": refusal.repair,
        "line": refusal.place.line if refusal.place else None,
        "column": column,
        "other_line": refusal.other.line if refusal.other else None,
        "other_column": other_column,
        "storage": refusal.storage or None,
        "text": str(refusal),
    }

"""The static proof: a program passes only if no timing of its transfers can make it go wrong."""

from schedc.ir.program import Program
from schedc.ir.verify.declarations import check_declarations, check_names
from schedc.ir.verify.limits import Limits
from schedc.ir.verify.machine import Machine
from schedc.ir.verify.verdict import Refusal, Statistics, Verdict

__all__ = ["Limits", "Refusal", "Statistics", "Verdict", "verify"]


def verify(program: Program, limits: Limits) -> Verdict:
    """Prove `program` safe under every timing of its transfers and within `limits`, or say why not.

    Refusals come in the order of execution, the first of every rule and pair of places, at most 20.
    """
    refusals = check_declarations(program, limits)
    if names := check_names(program):
        return Verdict((*refusals, *names), Statistics())
    machine = Machine(program)
    statistics = machine.verify()
    return Verdict((*refusals, *machine.refusals.values()), statistics)

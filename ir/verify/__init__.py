"""The static proof: a program passes only if no timing of its transfers and devices can make it go wrong."""

from schedc.ir.program import Program
from schedc.ir.verify.collection import uncollected
from schedc.ir.verify.context import context_of
from schedc.ir.verify.declarations import check_declarations
from schedc.ir.verify.devices.prove import verify_devices
from schedc.ir.verify.limits import Limits
from schedc.ir.verify.machine import Machine
from schedc.ir.verify.names import check_names
from schedc.ir.verify.verdict import Refusal, Statistics, Verdict

__all__ = ["Limits", "Refusal", "Statistics", "Verdict", "verify"]


def verify(program: Program, limits: Limits, lines: tuple[int, ...] | None = None) -> Verdict:
    """Prove `program` safe under every timing of its transfers and devices and within `limits`, or say why not.

    Refusals come in the order of execution, the first of every rule and pair of places, at most 20. `lines` are
    those of the operations in the order of `program.walk`, for programs read from a file; else those that
    `print_program` gives them.
    """
    refusals = check_declarations(program, limits)
    if names := check_names(program, lines):
        return Verdict((*refusals, *names), Statistics())
    with uncollected():
        context = context_of(program, lines)
        statistics = Machine(context).verify() if program.devices == 1 else verify_devices(context)
    return Verdict((*refusals, *context.refusals.values()), statistics)

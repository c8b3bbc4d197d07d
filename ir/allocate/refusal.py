"""What is said when buffers do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schedc.ir.allocate.clash import ClashSet
from schedc.ir.allocate.problem import Problem
from schedc.ir.allocate.share import Shared
from schedc.ir.errors import IrError
from schedc.ir.program import BLOCKS, ROW_BYTES, Op, Phase, Program
from schedc.ir.text_print import print_op


@dataclass(frozen=True)
class Clash:
    """A buffer of a set that cannot be in VMEM together."""

    buffer: str
    pool: str
    bytes: int


class DoesNotFit(IrError):  # noqa: N818 - the name says what happened
    """No packing within the capacity.

    `proven` is False if the search ran out of time; then `clashes` are only what is live at `where`. Else they cannot
    be packed together, and if `irreducible`, they can without any one of them.
    """

    def __init__(
        self,
        clashes: tuple[Clash, ...],
        needed: int,
        capacity: int,
        where: str,
        proven: bool,
        irreducible: bool = True,
        at_once: bool = True,
    ) -> None:
        self.clashes, self.where, self.proven, self.irreducible = clashes, where, proven, irreducible
        self.needed_bytes, self.capacity_bytes, self.missing_bytes = needed, capacity, needed - capacity
        names = ", ".join(f"{clash.buffer} ({clash.bytes})" for clash in clashes)
        if not proven:
            why = f"the best packing found takes {needed} bytes; live at {where} are {names}"
        else:
            smallest = "the smallest set" if irreducible else "a set"
            if at_once:
                why = f"{needed} bytes are live at {where}; {smallest} that cannot be there together is {names}"
            else:
                why = (
                    f"every packing takes {needed} bytes or more; {smallest} that cannot be packed together, "
                    f"fullest at {where}, is {names}"
                )
        super().__init__(f"{needed - capacity} bytes too many for the {capacity} bytes of the pools: {why}")


def refusal(
    program: Program, problems: Mapping[str, Problem], shared: Shared, clash: ClashSet, capacity: int
) -> DoesNotFit:
    """`capacity` is in rows."""
    proven = shared.kind == "cannot-fit"
    at_once = sum(problem.peak()[0] for problem in problems.values()) > capacity
    fullest = problems if at_once or not proven else _members(clash)
    moments = {problem.peak()[1] for problem in fullest.values() if problem.items}
    places = _places(program.body)
    where = " and ".join(dict.fromkeys(places[i] for i in sorted(moments))) or "the start"
    clashes = tuple(Clash(item.name, pool, item.size * ROW_BYTES) for pool, item in clash.members)
    needed = (shared.bound if proven else shared.rows) * ROW_BYTES
    return DoesNotFit(clashes, needed, capacity * ROW_BYTES, where, proven, clash.irreducible, at_once)


def _places(body: tuple[Op, ...]) -> list[str]:
    """Where every operation is, in program order: its innermost phase, else itself."""
    found = []
    for op in body:
        inner = _places(op.body) if isinstance(op, BLOCKS) else []
        own = _shortened(print_op(op).removesuffix(" {"))
        if isinstance(op, Phase):
            own = f"phase {op.name}"
            inner = [place if place.startswith("phase ") else own for place in inner]
        found += [own, *inner]
    return found


def _shortened(text: str, width: int = 80) -> str:
    return f"`{text}`" if len(text) <= width else f"`{text[:width]}…`"


def _members(clash: ClashSet) -> dict[str, Problem]:
    pools = sorted({pool for pool, _ in clash.members})
    return {pool: Problem(tuple(item for other, item in clash.members if other == pool)) for pool in pools}

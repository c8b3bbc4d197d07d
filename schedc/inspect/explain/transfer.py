"""Why a transfer cannot start earlier: found by moving its start up until something refuses.

Two things refuse. The meaning: its address is not known yet, what it moves is not made yet, what it overwrites is still
to be read. And the proof, of the program with the start at that place and addresses decided anew: a hazard that no
order of instructions shows, a semaphore that counts wrong, or VMEM that does not suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from schedc.compiler.pipeline import limits_of, with_addresses
from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.inspect.explain.moving import Movable, Spot, without_addresses
from schedc.inspect.flow import Flow, Moved, flow_of
from schedc.inspect.reasons import reason, us, where
from schedc.inspect.subject import Subject
from schedc.ir.allocate import DoesNotFit
from schedc.ir.program import Compute, RemoteStart, Start
from schedc.ir.uses import transfer_name
from schedc.ir.verify import verify

Kind = Literal["address", "data", "slot", "proof", "capacity", "edge"]
LARGE = 3000
"""Operations of a program above which a proof takes minutes."""


@dataclass(frozen=True)
class Constraint:
    """What refuses: in words, and the operation that does, as a line of program.ir (0: none)."""

    kind: Kind
    what: str
    line: int = 0


@dataclass(frozen=True)
class TransferAnswer:
    """`steps` operations and blocks that the start could move up, to just after `place`."""

    transfer: str
    line: int
    phase: str
    reason: str
    constraint: Constraint
    steps: int
    place: str
    step_us: float
    moved_us: float | None
    """The step with the start at that place; None if it cannot move."""
    proven: bool
    """Whether the proof was asked about the places in between."""
    chain: tuple[str, ...]
    """What the start waited for, and what that waited for, and so on, in the first execution that is waited for."""

    @property
    def answer(self) -> list[str]:
        lines = [f"{self.transfer} (line {self.line}, {self.phase or 'between phases'}): {self.reason}"]
        if self.steps:
            change = (self.moved_us or self.step_us) - self.step_us
            lines.append(
                f"it could start {self.steps} {'place' if self.steps == 1 else 'places'} earlier, {self.place}: "
                "the step would take "
                f"{self.moved_us:,.1f} µs, {change:+,.1f}"
            )
            lines.append(f"and no earlier: {self.constraint.what}")
        else:
            lines.append(f"it cannot start earlier: {self.constraint.what}")
        if not self.proven:
            lines.append(
                "the proof was not asked about the places in between: it takes long for a program of this size"
            )
        return [*lines, *(f"{'because' if at == 0 else 'since'} {link}" for at, link in enumerate(self.chain))]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "constraint": vars(self.constraint), "chain": list(self.chain), "answer": self.answer}


def find_transfers(subject: Subject, name: str) -> list[int]:
    """Operations that are meant by a line of program.ir, by `source -> target` or a part of it. Raises UserError."""
    numbered = subject.flow.numbered
    starts = {n: p.op for n, p in enumerate(numbered.ops) if isinstance(p.op, (Start, RemoteStart))}
    if name.isdecimal():
        found = [number for number in starts if numbered.lines[number] == int(name)]
        if not found:
            file = "program.ir" if subject.source is None else subject.source.name
            raise UserError(f"line {name} of {file} is no transfer; `schedc inspect transfers` lists them")
        return found
    names = {number: transfer_name(op) for number, op in starts.items()}
    found = [number for number in starts if name in (names[number], names[number].split(" -> ")[0])]
    found = found or [number for number in starts if name.strip() and name in names[number]]
    if not found:
        listed = ", ".join(dict.fromkeys(names.values()))
        raise UserError(f"no transfer is called {name!r}; there are {listed}")
    return found


def explain_transfer(
    subject: Subject, number: int, prove: bool | None = None, say: Callable[[str], None] = lambda text: None
) -> TransferAnswer:
    """`prove`: ask the proof about places in between; if it is None, for programs for which that takes seconds."""
    flow = flow_of(without_addresses(subject.program), subject.priced, lines=subject.lines)
    numbered = flow.numbered
    op = numbered.ops[number].op
    assert isinstance(op, (Start, RemoteStart))
    moved = [one for one in flow.moved if flow.executed[one.at].op == number]
    if prove is None:
        prove = len(flow.executed) <= LARGE
    movable = Movable(subject.program, number)
    spots = list(movable.spots())
    limiters = _limiters(flow, moved)
    free = 0
    while free < len(spots) and not limiters.keys() & set(spots[free].passed):
        free += 1
    steps, refused = free, None
    if prove and free:
        steps, refused = _as_far_as_proven(subject, movable, spots[:free], say)
    if refused is None:
        refused = _limit(flow, moved, spots, free, limiters)
    machine = subject.priced
    now = simulate(subject.program, machine).step_ns / 1e3
    then = simulate(movable.moved_to(spots[steps - 1]), machine).step_ns / 1e3 if steps else None
    return TransferAnswer(
        transfer_name(op),
        numbered.lines[number],
        numbered.ops[number].phase,
        reason(flow, moved) if moved else "never executed with these inputs",
        refused,
        steps,
        _place(flow, spots[steps - 1]) if steps else "",
        round(now, 3),
        None if then is None else round(then, 3),
        prove,
        tuple(_chain(flow, moved)),
    )


def _limiters(flow: Flow, moved: Sequence[Moved]) -> dict[int, Constraint]:
    """Operations of the same iteration that the start has to stay behind, whatever a proof says."""
    found: dict[int, Constraint] = {}
    numbered = flow.numbered
    arrays = {array.name for array in numbered.program.arrays}
    for one in moved:
        done = flow.executed[one.at]
        outward = all(span[0] in arrays for span in done.writes)
        reasons: list[tuple[int | None, Kind, str]] = [
            (one.known, "address", "its address is known only after"),
            (
                one.freed,
                "data" if outward else "slot",
                "it moves what is made by" if outward else "its slot is still used by",
            ),
        ]
        for place, kind, text in reasons:
            if place is None or not _same_iteration(flow, place, one.at):
                continue
            other = flow.executed[place].op
            found.setdefault(other, Constraint(kind, f"{text} {where(flow, place)}", numbered.lines[other]))
    return found


def _same_iteration(flow: Flow, place: int, of: int) -> bool:
    then = dict(flow.executed[place].iteration)
    return all(then.get(counter, value) == value for counter, value in flow.executed[of].iteration)


def _limit(
    flow: Flow, moved: Sequence[Moved], spots: Sequence[Spot], free: int, limiters: dict[int, Constraint]
) -> Constraint:
    """What the next place would pass, or the edge of what the start is in."""
    if free < len(spots):
        hit = [number for number in spots[free].passed if number in limiters]
        return limiters[hit[-1]]
    if not moved or not flow.executed[moved[0].at].iteration:
        return Constraint("edge", "there the program, or the case that it is in, begins")
    counter = flow.executed[moved[0].at].iteration[-1][0]
    before = [one for one in moved if one.freed is not None and not _same_iteration(flow, one.freed, one.at)]
    held = ""
    if before:
        last = before[-1]
        assert last.freed is not None
        held = f", and there its slot is used by {where(flow, last.freed)}"
    return Constraint("edge", f"there the loop over {counter} begins; earlier is in the iteration before{held}")


def _as_far_as_proven(
    subject: Subject, movable: Movable, spots: Sequence[Spot], say: Callable[[str], None]
) -> tuple[int, Constraint | None]:
    """How many of the places are proven, by halving; and what refuses the next one, None if all are."""
    low, high, refused = 0, len(spots) + 1, None
    while high - low > 1:
        middle = (low + high) // 2 if high <= len(spots) else len(spots)
        say(f"prove it {middle} places earlier")
        said = _refusal(subject, movable, spots[middle - 1])
        if said is None:
            low = middle
            if low == len(spots):
                return low, None
        else:
            high, refused = middle, said
    return low, refused


def _refusal(subject: Subject, movable: Movable, spot: Spot) -> Constraint | None:
    try:
        program = with_addresses(movable.moved_to(spot), subject.target)
    except DoesNotFit as error:
        return Constraint("capacity", f"VMEM does not suffice: {error.missing_bytes:,} bytes too many in {error.where}")
    verdict = verify(program, limits_of(subject.target))
    if verdict.proven:
        return None
    first = verdict.refusals[0]
    line = first.other.line if first.other else first.place.line if first.place else 0
    return Constraint("proof", f"the proof refuses it there ({first.rule}): {first.what}", line)


def _place(flow: Flow, spot: Spot) -> str:
    """Before the first operation that it then stands above."""
    numbered = flow.numbered
    first = min(spot.passed)
    phase = numbered.ops[first].phase
    op = numbered.ops[first].op
    what = op.kind if isinstance(op, Compute) else f"line {numbered.lines[first]}"
    return f"before {what}{f' of {phase}' if phase else ''}"


def _chain(flow: Flow, moved: Sequence[Moved], most: int = 6) -> list[str]:
    """From the start that is waited for longest, backwards: each link is what the one before waited for."""
    links: list[str] = []
    by_wait = {one.wait: one for one in flow.moved if one.wait is not None and one.stall_ns > 0.0}
    current = max(moved, key=lambda one: one.stall_ns, default=None)
    while current is not None and len(links) < most:
        place = max((p for p in (current.known, current.freed) if p is not None), default=None)
        issued = us(current.issued_ns)
        if place is None:
            links.append(f"it is issued at {issued}, where the program has it")
            break
        verb = "its address is known" if place == current.known else "what it needs is free or made"
        links.append(f"{verb} after {where(flow, place)}, at {us(flow.executed[place].ended_ns)}")
        earlier = next(
            (by_wait[at] for at in range(place, -1, -1) if at in by_wait and at < place and _near(flow, at, place)),
            None,
        )
        if earlier is None or earlier.at >= current.at:
            break
        op = flow.numbered.ops[flow.executed[earlier.at].op].op
        assert isinstance(op, (Start, RemoteStart))
        there = us(earlier.ended_ns)
        links.append(f"that waited {us(earlier.stall_ns)} for {transfer_name(op)}, which was there at {there}")
        current = earlier
    return links


def _near(flow: Flow, wait: int, place: int) -> bool:
    """Whether the wait is the phase's own, before the operation."""
    return flow.executed[wait].phase == flow.executed[place].phase and place - wait < 12

"""Loops whose trip count is only known to lie in low..high.

Iteration k runs under the fact trips >= k+1. At every head k that can be the exit the state is
recorded with the fact trips == k. The transfers in flight and the semaphores have to agree at all
exits, once their guards are resolved by those facts; of contents and scalars what agrees is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedc.ir.verify import scalars
from schedc.ir.verify.contents import Contents, meet
from schedc.ir.verify.induction import Exits, iterate
from schedc.ir.verify.linear import Lin, Value, sub
from schedc.ir.verify.logic import Condition, Facts
from schedc.ir.verify.state import Element, Raised, State, Transfer

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine, Node


def run(machine: Machine, node: Node, trips: Lin) -> None:
    low, high = machine.atoms.interval(trips)
    low, high = max(low, 0), max(high, 0)
    exits: Exits = []
    outside = machine.facts

    def leave(k: Value) -> None:
        if not _may_equal(machine, trips, k):
            return
        exact = [machine.logic.normal(">=", sub(k, trips))]
        if type(k) is not int or k > 0:
            exact.append(machine.logic.normal(">=", sub(trips, k)))
        if False not in exact:
            facts = tuple(condition for condition in exact if isinstance(condition, Condition))
            exits.append((_extend(outside, facts), machine.state.copy()))

    def iteration(k: Value) -> None:
        leave(k)
        more = machine.logic.compare(">", trips, k)
        if isinstance(more, Condition):
            machine.facts = _extend(outside, (more,))
            machine.conditions.setdefault(more, f"there is an iteration {node.counter}={machine.atoms.text(k)}")
        machine.counters[node.counter] = k
        try:
            machine.run(node.body)
        finally:
            machine.facts = outside

    iterate(machine, node, high, iteration, exits)
    leave(high)
    machine.counters.pop(node.counter, None)
    _join(machine, node, exits)


def _may_equal(machine: Machine, trips: Lin, k: Value) -> bool:
    low, _ = machine.atoms.interval(sub(trips, k))
    return low <= 0 or (type(k) is int and k == 0 and low <= 0)


def _extend(facts: Facts, more: Facts) -> Facts:
    return (*facts, *(condition for condition in more if condition not in facts))


def _join(machine: Machine, node: Node, exits: Exits) -> None:
    """One state after the loop that is true of every exit."""
    if not exits:
        return
    final = exits[-1][1]
    for facts, state in exits[:-1]:
        _same_transfers(machine, node, facts, state, final)
        for element in sorted({*state.scalars, *final.scalars}):
            here, there = state.scalars.get(element), final.scalars.get(element)
            if here != there:
                joined = scalars.join(machine, element, (here, there)) if here and there else None
                if joined:
                    final.scalars[element] = joined
                else:
                    final.scalars.pop(element, None)
    _check_edge(machine, node, final, len(exits))
    contents: dict[str, Contents] = {}
    for space, last in final.contents.items():
        joined_contents = last
        for facts, state in exits[:-1]:
            theirs = state.contents[space]
            if not _same_contents(machine, facts, theirs, last):
                joined_contents = meet(joined_contents, theirs)
        contents[space] = joined_contents
    final.contents = contents
    final.versions = {array: machine.next_version() for array in final.versions}
    machine.state = final


def _check_edge(machine: Machine, node: Node, final: State, exits: int) -> None:
    """No two iterations leave something on one semaphore: how much would depend on the trip count."""
    groups: dict[tuple[int, Element], list[Transfer | Raised]] = {}
    for transfer in final.transfers:
        if any(name == node.counter for name, _ in transfer.counters):
            groups.setdefault((transfer.op, transfer.semaphore), []).append(transfer)
    for element, entries in final.raised.items():
        for entry in entries:
            if any(name == node.counter for name, _ in entry.counters):
                groups.setdefault((entry.op, element), []).append(entry)
    for (op, element), group in groups.items():
        if len(group) < 2 or exits < 2:
            continue
        first = group[0]
        place = machine.place_of(op, first.counters)
        loop = machine.place_of(node.index, machine.now())
        semaphore = machine.semaphore_text(element)
        left = f"the transfer of {place} into {first.target.storage}" if isinstance(first, Transfer) else f"{place}"
        machine.refuse(
            "loop-edge",
            f"{loop} can end after different numbers of iterations, and {left} leaves {semaphore} different at each",
            f"take from {semaphore} in every iteration as much as was added, or all of it before the loop ends",
            place,
            storage=first.target.storage if isinstance(first, Transfer) else "",
            key=op,
            at=loop,
        )
        # Go on as if nothing were left, so that one fault is reported once.
        final.transfers = [transfer for transfer in final.transfers if transfer.semaphore != element]
        final.taken.pop(element, None)
        final.raised.pop(element, None)


def _same_transfers(machine: Machine, node: Node, facts: Facts, state: State, final: State) -> None:
    def resolved(guard: Facts) -> Facts | None:
        """The guard as a set of conditions that the facts leave open; None if they exclude it."""
        if machine.logic.excluded(guard, facts):
            return None
        return tuple(sorted(c for c in guard if not machine.logic.implied(c, facts)))

    def summary(transfers: list[Transfer]) -> list[tuple[object, Transfer]]:
        found: list[tuple[object, Transfer]] = []
        for t in transfers:
            if (guard := resolved(t.guard)) is not None:
                source, target = (t.source.storage, t.source.base), (t.target.storage, t.target.base)
                found.append(((t.op, source, target, t.semaphore, guard), t))
        return found

    both = {id(t) for t in state.transfers} & {id(t) for t in final.transfers}
    here = summary([t for t in state.transfers if id(t) not in both])
    there = summary([t for t in final.transfers if id(t) not in both])
    keys_here, keys_there = [key for key, _ in here], [key for key, _ in there]
    odd = [t for key, t in here if key not in keys_there] or [t for key, t in there if key not in keys_here]
    if odd or len(here) != len(there):
        transfer = (odd or [t for _, t in here])[0]
        place = machine.place_of(transfer.op, transfer.counters)
        machine.refuse(
            "loop-edge",
            f"{machine.place_of(node.index, machine.now())} can end after different numbers of iterations, and the "
            f"transfer of {place} into {transfer.target.storage} is in flight after some of them only",
            f"await {transfer.rows} rows of {machine.semaphore_text(transfer.semaphore)} before the loop ends",
            place,
            storage=transfer.target.storage,
            key=transfer.op,
            at=machine.place_of(node.index, machine.now()),
        )
        final.transfers = [t for t in final.transfers if t not in odd]
        return
    for entries_here, entries_there, what in (
        (state.taken, final.taken, "rows"),
        (state.raised, final.raised, "amount"),
    ):
        a, b = ({key: [(getattr(x, what), resolved(x.guard)) for x in xs if resolved(x.guard) is not None]
                 for key, xs in entries.items() if xs} for entries in (entries_here, entries_there))  # fmt: skip
        a, b = ({key: xs for key, xs in entries.items() if xs} for entries in (a, b))
        different: list[Element] = sorted(key for key in {*a, *b} if a.get(key) != b.get(key))
        if different:
            entry = (entries_there.get(different[0]) or entries_here[different[0]])[-1]
            place = machine.place_of(entry.op, entry.counters)
            machine.refuse(
                "loop-edge",
                f"{machine.place_of(node.index, machine.now())} can end after different numbers of iterations, and "
                f"{place} leaves {machine.semaphore_text(different[0])} at different counts",
                "take as much from it as was added in every iteration",
                place,
                key=different[0][0],
                at=machine.place_of(node.index, machine.now()),
            )


def _same_contents(machine: Machine, facts: Facts, a: Contents, b: Contents) -> bool:
    if a.starts == b.starts and a.layers == b.layers:
        return True

    def resolved(contents: Contents) -> list:
        found: list = []
        for start, layers in zip(contents.starts, contents.layers, strict=True):
            kept = []
            for layer in reversed(layers):
                if machine.logic.excluded(layer.guard, facts):
                    continue
                guard = tuple(sorted(c for c in layer.guard if not machine.logic.implied(c, facts)))
                kept.append((layer.owner, guard))
                if not guard:
                    break
            if not found or found[-1][1] != kept:
                found.append((start, kept))
        return found

    return resolved(a) == resolved(b)

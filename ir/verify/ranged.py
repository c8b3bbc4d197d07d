"""Loops whose trip count is only known to lie in low..high.

Iteration k runs under the fact trips >= k+1. At every head k that can be the exit the state is
recorded with the fact trips == k. The transfers in flight and the semaphores have to agree at all
exits, once their guards are resolved by those facts; of contents and scalars what agrees is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from schedc.ir.verify import scalars
from schedc.ir.verify.contents import Contents, meet
from schedc.ir.verify.in_flight import InFlight
from schedc.ir.verify.induction import Exits, iterate
from schedc.ir.verify.linear import Lin, Value, sub
from schedc.ir.verify.logic import Condition, Facts
from schedc.ir.verify.state import Element, Raised, State, Transfer

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine, Node


def run(machine: Machine, node: Node, trips: Lin) -> None:
    low, high = machine.atoms.interval(trips)
    low, high = max(low, 0), _most(machine, trips, max(low, 0), max(high, 0))
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
            machine.context.conditions.setdefault(more, f"there is an iteration {node.counter}={machine.atoms.text(k)}")
        machine.counters[node.counter] = k
        try:
            machine.run(node.body)
        finally:
            machine.facts = outside

    iterate(machine, node, high, iteration, exits)
    leave(high)
    machine.counters.pop(node.counter, None)
    _join(machine, node, trips, exits)


def _most(machine: Machine, trips: Lin, low: int, high: int) -> int:
    """The most iterations that the facts allow."""
    proves, facts = machine.logic.proves, machine.facts
    if not proves(sub(high - 1, trips), facts):
        return high
    while low < high:
        middle = (low + high) // 2
        if proves(sub(middle, trips), facts):
            high = middle
        else:
            low = middle + 1
    return high


def _may_equal(machine: Machine, trips: Lin, k: Value) -> bool:
    low, _ = machine.atoms.interval(sub(trips, k))
    return low <= 0 or (type(k) is int and k == 0 and low <= 0)


def _extend(facts: Facts, more: Facts) -> Facts:
    return (*facts, *(condition for condition in more if condition not in facts))


def _join(machine: Machine, node: Node, trips: Lin, exits: Exits) -> None:
    """One state after the loop that is true of every exit."""
    if not exits:
        return
    final = exits[-1][1]
    _join_scalars(machine, trips, exits)
    _join_transfers(machine, node, exits)
    _same_counts(machine, node, exits)
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
    machine.state = final
    for array in final.versions:
        scalars.renew(machine, array)


def _join_scalars(machine: Machine, trips: Lin, exits: Exits) -> None:
    """What is known of each element at every exit."""
    final = exits[-1][1]
    arrays = {array for _, state in exits for array in state.computed}
    recomputed = {a for a in arrays if len({state.computed.get(a) for _, state in exits}) > 1}
    elements = {element for _, state in exits for element in state.scalars}
    elements |= {(array, i) for array in recomputed for i in range(machine.scalars[array].length)}
    for element in sorted(elements):
        paths = tuple((facts, scalars.layers_of(machine, state, *element)) for facts, state in exits)
        alike = len({layers for _, layers in paths}) == 1
        if joined := paths[-1][1] if alike else scalars.join(machine, element, trips, paths):
            final.scalars[element] = joined
        else:
            final.scalars.pop(element, None)
    for array in recomputed:
        final.computed.pop(array, None)


def _resolved(machine: Machine, guard: Facts, facts: Facts) -> Facts | None:
    """The guard as a set of conditions that the facts leave open; None if they exclude it."""
    if machine.logic.excluded(guard, facts):
        return None
    return tuple(sorted(c for c in guard if not machine.logic.implied(c, facts)))


def _join_transfers(machine: Machine, node: Node, exits: Exits) -> None:
    """The same transfers are in flight at every exit: the same rows, semaphore and guard, started by whatever op."""
    final = exits[-1][1]
    untouched = set.intersection(*({id(transfer) for transfer in state.transfers} for _, state in exits))

    def in_flight(facts: Facts, state: State) -> list[Transfer]:
        guards = [(t, _resolved(machine, t.guard, facts)) for t in state.transfers if id(t) not in untouched]
        return [replace(t, guard=guard, skipped_by=None) for t, guard in guards if guard is not None]

    last = in_flight(*exits[-1])
    wanted = Counter(_identity(machine, t) for t in last)
    for facts, state in exits[:-1]:
        here = in_flight(facts, state)
        found = Counter(_identity(machine, t) for t in here)
        if found != wanted:
            if all(_same_in_flight(machine, facts, state, final) for facts, state in exits[:-1]):
                return
            odd = next((t for t in here if _identity(machine, t) in found - wanted), None)
            odd = odd or next(t for t in last if _identity(machine, t) in wanted - found)
            _refuse_edge(machine, node, odd)
            # Go on as if nothing were left, so that one fault is reported once.
            machine.spoiled.add(odd.semaphore)
            final.transfers = InFlight(t for t in final.transfers if t.semaphore != odd.semaphore)
            final.taken.pop(odd.semaphore, None)
            return
    final.transfers = InFlight([*(t for t in final.transfers if id(t) in untouched), *last])


def _same_in_flight(machine: Machine, facts: Facts, state: State, final: State) -> bool:
    """Whether the guards of what is in flight after the last iteration say what is after this one."""

    def all_of(of: State) -> Counter:
        guards = [(t, _resolved(machine, t.guard, facts)) for t in of.transfers]
        return Counter(_identity(machine, replace(t, guard=guard)) for t, guard in guards if guard is not None)

    return all_of(state) == all_of(final)


def _identity(machine: Machine, t: Transfer) -> tuple[object, ...]:
    """What counts of a transfer once the loop has ended. Where it reads from does not, if nothing writes there."""
    source = None if machine.is_read_only(t.source.storage) else (t.source.storage, t.source.base)
    return t.target.storage, t.target.base, t.rows, source, t.semaphore, t.device, t.guard


def _refuse_edge(machine: Machine, node: Node, transfer: Transfer) -> None:
    place, loop = machine.place_of_transfer(transfer), machine.place_of(node.index, machine.now())
    semaphore = machine.source.semaphore_text(transfer.semaphore)
    machine.refuse(
        "loop-edge",
        f"{loop} can end after different numbers of iterations, and the transfer of {place} into "
        f"{transfer.target.storage} is in flight after some of them only",
        f"await {transfer.rows} rows of {semaphore} before the loop ends, or leave the same transfer in flight "
        "after every number of iterations",
        place,
        storage=transfer.target.storage,
        key=transfer.op,
        at=loop,
    )


def _same_counts(machine: Machine, node: Node, exits: Exits) -> None:
    final = exits[-1][1]
    for facts, state in exits[:-1]:
        for entries_here, entries_there, what in (
            (state.taken, final.taken, "rows"),
            (state.raised, final.raised, "amount"),
        ):
            here, there = _counts(machine, facts, entries_here, what), _counts(machine, facts, entries_there, what)
            different: list[Element] = sorted(key for key in {*here, *there} if here.get(key) != there.get(key))
            if different:
                entry = (entries_there.get(different[0]) or entries_here[different[0]])[-1]
                place, loop = machine.place_of(entry.op, entry.counters), machine.place_of(node.index, machine.now())
                machine.refuse(
                    "loop-edge",
                    f"{loop} can end after different numbers of iterations, and {place} leaves "
                    f"{machine.source.semaphore_text(different[0])} at different counts",
                    "take as much from it as was added in every iteration",
                    place,
                    key=different[0][0],
                    at=loop,
                )


def _counts(machine: Machine, facts: Facts, entries: dict, what: str) -> dict[Element, list[tuple[int, Facts]]]:
    found: dict[Element, list[tuple[int, Facts]]] = {}
    for element, listed in entries.items():
        guards = [(getattr(entry, what), _resolved(machine, entry.guard, facts)) for entry in listed]
        if kept := [(amount, guard) for amount, guard in guards if guard is not None]:
            found[element] = kept
    return found


def _check_edge(machine: Machine, node: Node, final: State, exits: int) -> None:
    """No two iterations leave a signal on one semaphore: how much would depend on the trip count."""
    groups: dict[tuple[int, Element], list[Raised]] = {}
    for element, entries in final.raised.items():
        for entry in entries:
            if any(name == node.counter for name, _ in entry.counters):
                groups.setdefault((entry.op, element), []).append(entry)
    for (op, element), group in groups.items():
        if len(group) < 2 or exits < 2:
            continue
        place = machine.place_of(op, group[0].counters)
        loop = machine.place_of(node.index, machine.now())
        semaphore = machine.source.semaphore_text(element)
        machine.refuse(
            "loop-edge",
            f"{loop} can end after different numbers of iterations, and {place} leaves {semaphore} different at each",
            f"take from {semaphore} in every iteration as much as was added, or all of it before the loop ends",
            place,
            key=op,
            at=loop,
        )
        # Go on as if nothing were left, so that one fault is reported once.
        final.raised.pop(element, None)


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

"""Static loops of the symbolic machine: executed iteration by iteration, or by induction.

Let S(k) be the state at the head of iteration k and P a period that turns every `//` and `%` of the
loop's counter into a linear form. If S(k-P) and S(k) differ in numbers only, the state is
extrapolated to G(u), linear in a variable u >= 0 with G(0) = S(k). P iterations are then executed
from G(u) with the counter k + P*u + j, u being an atom with interval 0..U: every check and every
decision made on the way holds for all those u at once (a comparison that changes its answer within
0..U shortens U to where it is uniform). If the state reached equals G(u+1), then by induction over u
the iterations k .. k+P*(U+1)-1 pass every check and end in G(U+1), where execution goes on. Nothing
is guessed: if the states do not match, or a check fails on the way, the iterations are executed one
by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from schedc.ir.verify import scalars
from schedc.ir.verify.contents import Contents, visible
from schedc.ir.verify.forget import forget
from schedc.ir.verify.in_flight import InFlight
from schedc.ir.verify.linear import Lin, Value, add
from schedc.ir.verify.logic import AbortError, Facts, SplitError
from schedc.ir.verify.state import State, at, between

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine, Node

_ATTEMPTS = 4
_FEW_TRIPS = 16
"""Unrolled loops, and loops in which devices communicate, of at most this many iterations are executed: the states
that an induction compares cost more."""
Exits = list[tuple[Facts, State]]


def run_static(machine: Machine, node: Node, trips: int) -> None:
    def iteration(k: Value) -> None:
        machine.counters[node.counter] = k
        machine.run(node.body)

    iterate(machine, node, trips, iteration)
    machine.counters.pop(node.counter, None)


def iterate(
    machine: Machine,
    node: Node,
    trips: int,
    iteration: Callable[[Value], None],
    exits: Exits | None = None,
) -> None:
    k, attempts = 0, 0
    inductive = node.period and (trips > _FEW_TRIPS or not (node.traced or node.communicates))
    before: State | None = None
    while k < trips:
        if inductive and k % node.period == 0 and attempts < _ATTEMPTS and trips - k >= 2 * node.period:
            state = machine.state
            now = _general_state(machine, node)
            if before is not None:
                attempts += 1
                recorded = len(exits) if exits is not None else 0
                done = _induct(machine, node, k, trips, before, now, iteration, exits)
                if done:
                    k += done
                    before = None
                    attempts -= 1
                    continue
                machine.state = state
                if exits is not None:
                    del exits[recorded:]
            before = now
        iteration(k)
        k += 1


def _general_state(machine: Machine, node: Node) -> State:
    """A copy of the state, without what is of one iteration only."""
    state = machine.state.copy()
    if node.computes:
        state = forget(machine, state)
    for space, contents in state.contents.items():
        if any(len(layers) > 2 for layers in contents.layers):
            found = [layers if len(layers) <= 2 else visible(layers, machine.logic) for layers in contents.layers]
            state.contents[space] = Contents(contents.starts, found).joined()
    return state


def _induct(
    machine: Machine,
    node: Node,
    k: int,
    trips: int,
    before: State,
    now: State,
    iteration: Callable[[Value], None],
    exits: Exits | None,
) -> int:
    """Iterations that the induction covers from k on; 0 if it does not go through."""
    period = node.period
    if not before.alike(now):
        return 0
    pairs = list(zip(before.values(), now.values(), strict=True))
    high = (trips - k) // period - 1
    events, peers, reach = now.events - before.events, machine.peers, machine.logic.reach
    recorded = len(exits) if exits is not None else 0
    facts = machine.facts
    examined = machine.examined
    while high >= 1:
        if events and (high := peers.repeats(now.events, events, high)) < 1:
            return 0
        u = machine.atoms.induction((node.index, k), high)
        general = [between(a, b, u, machine.atoms) for a, b in pairs]
        if any(value is None for value in general):
            return 0
        values = iter(general)
        machine.state = now.map(lambda _, values=values: next(values))  # type: ignore[misc]
        expected = machine.state.map(lambda value, u=u: at(value, u, 1, True, machine.atoms))  # type: ignore[misc]
        expected.events += events
        machine.inductions += 1
        machine.peers = peers.general(now.events, events, u, reach) if events else peers
        try:
            for j in range(period):
                iteration(add(k + j, Lin(0, ((u, period),))))
        except SplitError as split:
            if split.atom != u:
                raise
            high = min(split.high, high - 1)
            if exits is not None:
                del exits[recorded:]
            continue
        except AbortError:
            return 0
        finally:
            machine.inductions -= 1
            machine.facts, machine.peers = facts, peers
        reached = _general_state(machine, node)
        if reached.events != expected.events or not reached.alike(expected) or reached.values() != expected.values():
            return 0
        machine.state = expected.map(lambda value, u=u, high=high: at(value, u, high, False, machine.atoms))  # type: ignore[misc]
        machine.state.events = now.events + (high + 1) * events
        _drop_impossible(machine)
        for array in reached.versions:
            scalars.renew(machine, array)
        machine.skipped += (high + 1) * period
        return (high + 1) * period
    machine.examined = examined
    return 0


def _drop_impossible(machine: Machine) -> None:
    """What the last iterations would only have left if there had been more of them."""
    impossible = machine.logic.impossible
    state = machine.state
    state.transfers = InFlight(entry for entry in state.transfers if not impossible(entry.guard))
    state.taken = {key: [x for x in entries if not impossible(x.guard)] for key, entries in state.taken.items()}
    state.raised = {key: [x for x in entries if not impossible(x.guard)] for key, entries in state.raised.items()}

"""What no later decision can ask for any more: under which values of former iterations rows were written.

A loop over layers that run experts by number leaves, in every layer, rows that were written if there were so many
experts in that layer. Once the router has chosen again nothing tells how many there were, so that only "maybe" is
left of the condition. States of different iterations are alike then, which an induction wants.

Forgetting is safe: a row that was maybe written counts as written for nobody, and as overwritten for all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedc.ir.verify.contents import Contents, Layer, Layers, compact, holds_for_last_owner
from schedc.ir.verify.linear import Lin, Value
from schedc.ir.verify.logic import MAYBE, Condition, Facts

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine
    from schedc.ir.verify.state import State


def forget(machine: Machine, state: State) -> State:
    """The state, where contents depend on a computed value only if something else still knows that value."""
    known = _Known(machine, state)
    if not known.stale_guards():
        return state
    changed: dict[Layers, Layers] = {}

    def forgotten(layers: Layers) -> Layers:
        if (found := changed.get(layers)) is None:
            found = changed[layers] = _forgotten(machine, known, layers)
        return found

    for space, contents in state.contents.items():
        state.contents[space] = Contents(contents.starts, [forgotten(layers) for layers in contents.layers]).joined()
    return state


def _forgotten(machine: Machine, known: _Known, layers: Layers) -> Layers:
    if not any(known.stale(condition) for layer in layers for condition in layer.guard):
        return layers
    if holds_for_last_owner(layers, machine.facts, machine.logic):
        return (layers[-1]._replace(guard=()),)
    return compact((Layer(owner, known.rest(guard), op) for owner, guard, op in layers), machine.logic)


class _Known:
    """The computed values that are still known in a state: it mentions them elsewhere than in its contents."""

    def __init__(self, machine: Machine, state: State) -> None:
        self._places = machine.atoms.places
        self._state = state
        self._stamps = {
            (array, stamp.op): tuple([value for _, value in stamp.counters])
            for array, stamp in state.computed.items()
        }  # fmt: skip
        self._used: set[int] = set()
        for value, guard in (layer for layers in state.scalars.values() for layer in layers):
            self._use(value)
            self._use_all(guard)
        self._use_all(machine.facts)
        for transfer in state.transfers:
            self._use_all(transfer.guard)
        for taken in state.taken.values():
            for entry in taken:
                self._use_all(entry.guard)
        for raised in state.raised.values():
            for signal in raised:
                self._use_all(signal.guard)
        self._stale: dict[Condition, bool] = {}

    def _use_all(self, guard: Facts) -> None:
        for condition in guard:
            self._use(condition.value)

    def _use(self, value: Value) -> None:
        if isinstance(value, Lin):
            self._used.update(atom for atom, _ in value.terms)

    def stale(self, condition: Condition) -> bool:
        if (found := self._stale.get(condition)) is None:
            value = condition.value
            atoms = [atom for atom, _ in value.terms] if isinstance(value, Lin) else []
            found = self._stale[condition] = any(self._is_lost(atom) for atom in atoms)
        return found

    def _is_lost(self, atom: int) -> bool:
        if atom in self._used or atom not in self._places:
            return False
        family, place = self._places[atom]
        return family.rank is not None and self._stamps.get((family.array, family.op)) != place[1:]

    def rest(self, guard: Facts) -> Facts:
        kept = tuple(condition for condition in guard if condition != MAYBE and not self.stale(condition))
        return guard if len(kept) == len(guard) else (*kept, MAYBE)

    def stale_guards(self) -> bool:
        return any(
            self.stale(condition)
            for contents in self._state.contents.values()
            for layers in contents.layers
            for layer in layers
            for condition in layer.guard
        )

"""Scalars in SMEM: what an element is known to be, and that a set stays inside the declared range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedc.ir.program import Scalars
from schedc.ir.verify.linear import Family, Lin, Value, add, scale, sub
from schedc.ir.verify.logic import AbortError, Facts
from schedc.ir.verify.state import Stamp, State

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine

_MOST_LAYERS = 8


def read(machine: Machine, array: str, index: Value) -> Value:
    declared = machine.scalars[array]
    if not _in_array(machine, declared, index):
        return declared.low
    if declared.role == "table":
        return _constant(machine, declared, index)
    if declared.distinct and declared.low < declared.high:
        return _member(machine, Family(array), (index,))
    if type(index) is int:
        return _element(machine, declared, index)
    elements = range(declared.length)
    changed = any((array, i) in machine.state.scalars for i in elements)
    if array in machine.state.computed and not changed:
        return _computed(machine, array, machine.state.computed[array], index)
    if declared.role == "local" or changed:
        low, high = machine.atoms.interval(index)
        for i in range(max(low, 0), min(high + 1, declared.length)):
            _element(machine, declared, i)
    version = machine.state.versions.get(array, 0)
    return _atom(machine, declared, ("at", array, index, version), f"{array}[{machine.atoms.text(index)}]")


def _constant(machine: Machine, declared: Scalars, index: Value) -> Value:
    if type(index) is int:
        return declared.values[index]
    assert isinstance(index, Lin)
    atoms = machine.atoms
    if any(atom in atoms.inductions for atom, _ in index.terms):
        raise AbortError
    low, high = atoms.interval(index)
    return atoms.lookup(declared.name, declared.values, index, max(low, 0), min(high, declared.length - 1))


def _element(machine: Machine, declared: Scalars, index: int) -> Value:
    array = declared.name
    layers = layers_of(machine, machine.state, array, index)
    possible: list[tuple[Value, Facts]] = []
    for value, guard in reversed(layers):
        if all(machine.logic.implied(condition, machine.facts) for condition in guard):
            if not possible:
                return value
            possible.append((value, ()))
            break
        if not machine.logic.excluded(guard, machine.facts):
            possible.append((value, guard))
    else:
        if declared.role == "local":
            machine.refuse(
                "read-before-write",
                f"{machine.place()} reads scalar {array}[{index}], which is not set"
                + (" under every guard" if layers else ""),
                f"set {array}[{index}] before, under the same guard",
                storage=array,
                key=(array, index),
            )
            return _atom(machine, declared, ("unset", array, index), f"{array}[{index}]")
        if not possible:
            return _atom(machine, declared, ("input", array, index), f"{array}[{index}]")
    return _atom(machine, declared, ("one of", array, index, tuple(possible)), f"{array}[{index}]")


def _atom(machine: Machine, declared: Scalars, key: tuple, label: str) -> Value:
    if declared.low == declared.high:
        return declared.low
    return Lin(0, ((machine.atoms.atom(key, declared.low, declared.high, label), 1),))


def write(machine: Machine, array: str, index: Value, value: Value) -> None:
    declared = machine.scalars[array]
    if not _may_set(machine, declared, "an element of "):
        return
    logic, facts = machine.logic, machine.facts
    if not (logic.proves(add(value, -declared.low), facts) and logic.proves(sub(declared.high, value), facts)):
        low, high = machine.atoms.interval(value)
        machine.refuse(
            "scalar-range",
            f"{machine.place()} sets {array}[{machine.atoms.text(index)}] to {machine.atoms.text(value)}, which may be "
            f"{low}..{high}, outside its range {declared.low}..{declared.high}",
            f"declare {array} in {min(low, declared.low)}..{max(high, declared.high)}",
            storage=array,
        )
        value = declared.low
    if not _in_array(machine, declared, index):
        return
    if type(index) is int:
        _push(machine, (array, index), value, facts)
    else:
        # Any element may have changed: each keeps its range and nothing else. One that is not set may still not be.
        for i in range(declared.length):
            layers = layers_of(machine, machine.state, array, i)
            if layers:
                key = ("written", array, i, layers, index, value)
                _push(machine, (array, i), _atom(machine, declared, key, f"{array}[{i}]"), machine.facts)
    renew(machine, array)


def compute(machine: Machine, array: str) -> None:
    """A computation sets every element, each to some value of the range that nothing else is known of."""
    declared = machine.scalars[array]
    if not _may_set(machine, declared, ""):
        return
    state, stamp = machine.state, Stamp(machine.index(), machine.now())
    if all(fact in machine.world for fact in machine.facts):
        for element in [element for element in state.scalars if element[0] == array]:
            del state.scalars[element]
        state.computed[array] = stamp
    else:
        for i in range(declared.length):
            _push(machine, (array, i), _computed(machine, array, stamp, i), machine.facts)
    renew(machine, array)


def _computed(machine: Machine, array: str, stamp: Stamp, index: Value) -> Value:
    """What a computation has set an element to."""
    place = (index, *[value for _, value in stamp.counters])
    return _member(machine, Family(array, machine.rank, stamp.op), place)


def _member(machine: Machine, family: Family, place: tuple[Value, ...]) -> Value:
    declared = machine.scalars[family.array]
    if declared.low == declared.high:
        return declared.low
    return Lin(0, ((machine.atoms.member(family, place, declared.low, declared.high), 1),))


def layers_of(machine: Machine, state: State, array: str, index: int) -> tuple[tuple[Value, Facts], ...]:
    """The values that an element was set to in this state, oldest first, each with its guard."""
    if layers := state.scalars.get((array, index)):
        return layers
    stamp = state.computed.get(array)
    return () if stamp is None else ((_computed(machine, array, stamp, index), ()),)


def _may_set(machine: Machine, declared: Scalars, what: str) -> bool:
    if declared.role != "local":
        machine.refuse(
            "constant-written",
            f"{machine.place()} sets {what}{declared.name}, which has role {declared.role}",
            f"set a local smem array instead of {declared.name}",
            storage=declared.name,
        )
    return declared.role == "local"


def renew(machine: Machine, array: str) -> None:
    """Number what is known of the elements: equal knowledge, equal number, on every device."""
    state = machine.state
    stamp = state.computed.get(array)
    explicit = tuple(sorted((i, layers) for (name, i), layers in state.scalars.items() if name == array))
    known = (None if stamp is None else (machine.rank, stamp), explicit)
    machine.state.versions[array] = machine.context.versions.setdefault(
        (array, known), len(machine.context.versions) + 1
    )


def _push(machine: Machine, element: tuple[str, int], value: Value, facts: Facts) -> None:
    facts = tuple(fact for fact in facts if fact not in machine.world)
    layers = layers_of(machine, machine.state, *element)
    if not facts:
        machine.state.scalars[element] = ((value, ()),)
        return
    if layers and layers[-1][0] == value and all(c in facts for c in layers[-1][1]):
        return
    logic = machine.logic
    kept = tuple(layer for layer in layers if not all(logic.implied(c, layer[1]) for c in facts))
    if len(kept) >= _MOST_LAYERS:
        kept = ((_opaque(machine, element, kept), kept[0][1]),)
    machine.state.scalars[element] = (*kept, (value, facts))


def _opaque(machine: Machine, element: tuple[str, int], layers: tuple) -> Value:
    declared = machine.scalars[element[0]]
    key = ("forgotten", *element, layers)
    return _atom(machine, declared, key, f"{element[0]}[{element[1]}]")


def join(machine: Machine, element: tuple[str, int], trips: Value, paths: tuple) -> tuple[tuple[Value, Facts], ...]:
    """The layers after paths that end with different ones: any value of the declared range, if each has set it."""
    declared = machine.scalars[element[0]]
    for facts, layers in paths:
        if not any(all(machine.logic.implied(c, facts) for c in guard) for _, guard in layers):
            return ()
    key = ("joined", *element, trips, tuple(layers for _, layers in paths))
    return ((_atom(machine, declared, key, f"{element[0]}[{element[1]}]"), ()),)


def _in_array(machine: Machine, declared: Scalars, index: Value) -> bool:
    last = declared.length - 1
    if type(index) is int:
        inside = 0 <= index <= last
    else:
        inside = machine.logic.proves(index, machine.facts) and machine.logic.proves(
            add(scale(index, -1), last), machine.facts
        )
    if not inside:
        machine.refuse(
            "out-of-range",
            f"{machine.place()} uses {declared.name}[{machine.atoms.text(index)}], which has elements 0..{last}",
            f"keep the index of {declared.name} within 0..{last}",
            storage=declared.name,
            key=declared.name,
        )
    return inside

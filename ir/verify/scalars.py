"""Scalars in SMEM: what an element is known to be, and that a set stays inside the declared range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedc.ir.program import Scalars
from schedc.ir.verify.linear import Lin, Value, add, scale, sub
from schedc.ir.verify.logic import AbortError, Facts

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
        return Lin(0, ((machine.atoms.element(array, index, declared.low, declared.high), 1),))
    if type(index) is int:
        return _element(machine, declared, index)
    elements = range(declared.length)
    if declared.role == "local" or any((array, i) in machine.state.scalars for i in elements):
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
    layers = machine.state.scalars.get((array, index), ())
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
            layers = machine.state.scalars.get((array, i), ())
            if layers:
                key = ("written", array, i, layers, index, value)
                _push(machine, (array, i), _atom(machine, declared, key, f"{array}[{i}]"), machine.facts)
    renew(machine, array)


def compute(machine: Machine, array: str) -> None:
    """A computation sets every element, each to some value of the range that nothing else is known of."""
    declared = machine.scalars[array]
    if not _may_set(machine, declared, ""):
        return
    for i in range(declared.length):
        value: Value = declared.low
        if declared.low < declared.high:
            key = (machine.index(), machine.now(), array, i)
            atom = machine.atoms.computed(machine.rank, key, declared.low, declared.high, f"{array}[{i}]")
            value = Lin(0, ((atom, 1),))
        _push(machine, (array, i), value, machine.facts)
    renew(machine, array)


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
    state = machine.state.scalars
    known = tuple(state.get((array, i), ()) for i in range(machine.scalars[array].length))
    machine.state.versions[array] = machine.context.versions.setdefault(
        (array, known), len(machine.context.versions) + 1
    )


def _push(machine: Machine, element: tuple[str, int], value: Value, facts: Facts) -> None:
    facts = tuple(fact for fact in facts if fact not in machine.world)
    layers = machine.state.scalars.get(element, ())
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

"""The state of the symbolic machine between two operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from schedc.ir.verify.contents import Contents, Layer, Layers
from schedc.ir.verify.in_flight import InFlight
from schedc.ir.verify.linear import Atoms, Lin, Value
from schedc.ir.verify.logic import Condition, Facts

Counters = tuple[tuple[str, Value], ...]
Element = tuple[str, int]
"""One element of a semaphore or of a scalar array."""


class Stamp(NamedTuple):
    """One execution of a computation that sets scalars."""

    op: int
    counters: Counters


@dataclass(frozen=True)
class Access:
    """`rows` rows of `space` from row `base`, for the buffer or HBM array `storage`."""

    space: str
    storage: str
    base: Value
    rows: int
    first: int
    """Row of the space where the storage (the buffer's slot 0) begins."""
    lowest: int
    highest: int
    """The rows of the space that a dynamic base can reach in its storage lie in lowest..highest-1."""
    low: int
    high: int
    """Whatever the base is, the rows lie in low..high-1."""


@dataclass(frozen=True)
class Transfer:
    op: int
    counters: Counters
    source: Access
    target: Access
    semaphore: Element
    guard: Facts
    """It exists only if all of these held."""
    skipped_by: int | None = None
    """The wait that completes it under a stricter guard, leaving this remainder."""
    device: int | None = None
    """The peer that started it, if it comes from one."""

    @property
    def rows(self) -> int:
        return self.source.rows


@dataclass(frozen=True)
class Taken:
    """Rows that a wait took from a semaphore without forcing any one transfer."""

    op: int
    counters: Counters
    rows: int
    guard: Facts


@dataclass(frozen=True)
class Raised:
    """A change of a regular semaphore: positive by a signal, negative by an await."""

    op: int
    counters: Counters
    amount: int
    guard: Facts


Counted = TypeVar("Counted", Taken, Raised)
T = TypeVar("T")


@dataclass
class State:
    reach: Callable[[Value], tuple[int, int]]
    """Bounds of a value, whatever the scalars are."""
    transfers: InFlight = field(default_factory=InFlight)
    taken: dict[Element, list[Taken]] = field(default_factory=dict)
    raised: dict[Element, list[Raised]] = field(default_factory=dict)
    contents: dict[str, Contents] = field(default_factory=dict)
    scalars: dict[Element, tuple[tuple[Value, Facts], ...]] = field(default_factory=dict)
    """Values that scalars were set to, oldest first, each with the guard under which it was."""
    computed: dict[str, Stamp] = field(default_factory=dict)
    """Scalar arrays of which a computation has set every element, and when: elements not in `scalars` have its values.
    """
    versions: dict[str, int] = field(default_factory=dict)
    """Times that a scalar array was written."""
    events: int = 0
    """Events of communication that the device has executed."""

    def copy(self) -> State:
        return State(
            self.reach,
            InFlight(self.transfers),
            {key: list(entries) for key, entries in self.taken.items() if entries},
            {key: list(entries) for key, entries in self.raised.items() if entries},
            {space: contents.copy() for space, contents in self.contents.items()},
            dict(self.scalars),
            dict(self.computed),
            dict(self.versions),
            self.events,
        )

    def alike(self, other: State) -> bool:
        """Whether the two differ in values only. Wants a `copy`'s tidy lists."""
        return (
            _alike(self.transfers, other.transfers, transfer_shape)
            and _all_alike(self.taken, other.taken, _taken_shape)
            and _all_alike(self.raised, other.raised, _raised_shape)
            and self.contents.keys() == other.contents.keys()
            and all(
                mine.starts == theirs.starts and _alike(mine.layers, theirs.layers, _layers_shape)
                for mine, theirs in ((contents, other.contents[space]) for space, contents in self.contents.items())
            )
            and _all_alike(self.scalars, other.scalars, _scalar_shape)
            and {a: stamp.op for a, stamp in self.computed.items()} == {a: s.op for a, s in other.computed.items()}
        )

    def map(self, change: Callable[[Value], Value]) -> State:
        """A copy with every value replaced, visited in an order that depends on the shape alone.

        What does not change stays the same object.
        """

        def facts(guard: Facts) -> Facts:
            if not guard:
                return guard
            changed = tuple([Condition(kind, change(value)) for kind, value in guard])
            return guard if changed == guard else changed

        def counters(pairs: Counters) -> Counters:
            if not pairs:
                return pairs
            changed = tuple([(name, change(value)) for name, value in pairs])
            return pairs if changed == pairs else changed

        def access(a: Access) -> Access:
            base = change(a.base)
            if base == a.base:
                return a
            low, high = self.reach(base)
            high += a.rows
            lowest, highest = (low, high) if type(base) is int else (min(low, a.lowest), max(high, a.highest))
            return Access(a.space, a.storage, base, a.rows, a.first, lowest, highest, low, high)

        def transfer(t: Transfer) -> Transfer:
            when, source, target, guard = counters(t.counters), access(t.source), access(t.target), facts(t.guard)
            if when is t.counters and source is t.source and target is t.target and guard is t.guard:
                return t
            return Transfer(t.op, when, source, target, t.semaphore, guard, t.skipped_by, t.device)

        def count(x: Counted) -> Counted:
            when, guard = counters(x.counters), facts(x.guard)
            return x if when is x.counters and guard is x.guard else replace(x, counters=when, guard=guard)

        def layered(layers: Layers) -> Layers:
            guards = [facts(layer.guard) for layer in layers]
            if all(guard is layer.guard for guard, layer in zip(guards, layers, strict=True)):
                return layers
            return tuple([Layer(x.owner, guard, x.op) for x, guard in zip(layers, guards, strict=True)])

        return State(
            self.reach,
            InFlight([transfer(t) for t in self.transfers]),
            {key: [count(x) for x in xs] for key, xs in sorted(self.taken.items()) if xs},
            {key: [count(x) for x in xs] for key, xs in sorted(self.raised.items()) if xs},
            {
                space: Contents(
                    list(c.starts),
                    [x if len(x) == 1 and not x[0][1] else layered(x) for x in c.layers],
                )
                for space, c in sorted(self.contents.items())
            },
            {
                key: tuple([(change(value), facts(guard)) for value, guard in layers])
                for key, layers in sorted(self.scalars.items())
            },
            {array: Stamp(op, counters(when)) for array, (op, when) in sorted(self.computed.items())},
            dict(self.versions),
            self.events,
        )

    def values(self) -> list[Value]:
        """Every value, in the order in which `map` visits them."""
        found: list[Value] = []
        for t in self.transfers:
            found += [value for _, value in t.counters]
            found += (t.source.base, t.target.base)
            found += [value for _, value in t.guard]
        for _, taken in sorted(self.taken.items()):
            found += [value for entry in taken for value in _numbers(entry)]
        for _, raised in sorted(self.raised.items()):
            found += [value for entry in raised for value in _numbers(entry)]
        for _, contents in sorted(self.contents.items()):
            found += [value for layers in contents.layers for layer in layers for _, value in layer[1]]
        for _, scalars in sorted(self.scalars.items()):
            for value, guard in scalars:
                found.append(value)
                found += [known for _, known in guard]
        for _, stamp in sorted(self.computed.items()):
            found += [value for _, value in stamp.counters]
        return found


def _numbers(entry: Taken | Raised) -> list[Value]:
    return [*(value for _, value in entry.counters), *(value for _, value in entry.guard)]


def _alike(mine: Sequence[T], theirs: Sequence[T], shape: Callable[[T], object]) -> bool:
    return len(mine) == len(theirs) and all(a is b or shape(a) == shape(b) for a, b in zip(mine, theirs, strict=True))


def _all_alike(
    mine: Mapping[Element, Sequence[T]], theirs: Mapping[Element, Sequence[T]], shape: Callable[[T], object]
) -> bool:
    return mine.keys() == theirs.keys() and all(_alike(entries, theirs[key], shape) for key, entries in mine.items())


def transfer_shape(t: Transfer) -> object:
    spaces = (t.source.storage, t.target.storage, t.source.space, t.target.space)
    return (t.op, *spaces, t.rows, t.semaphore, t.skipped_by, t.device, len(t.counters), _kinds(t.guard))


def _taken_shape(x: Taken) -> object:
    return x.op, x.rows, len(x.counters), _kinds(x.guard)


def _raised_shape(x: Raised) -> object:
    return x.op, x.amount, len(x.counters), _kinds(x.guard)


def _layers_shape(layers: Layers) -> object:
    return [(layer.owner, layer.op, _kinds(layer.guard)) for layer in layers]


def _scalar_shape(layer: tuple[Value, Facts]) -> object:
    return _kinds(layer[1])


def _kinds(guard: Facts) -> tuple[str, ...]:
    return tuple([kind for kind, _ in guard])


def between(before: Value, after: Value, atom: int, atoms: Atoms) -> Value | None:
    """The value that is `before` at atom = -1 and `after` at atom = 0, or None if it is not linear in it.

    Members of a family are followed from place to place, where those are linear in the atom.
    """
    if before == after:
        return after
    if isinstance(before, Lin) and isinstance(after, Lin):
        terms = after.terms if before.terms == after.terms else _followed(before, after, atom, atoms)
        if terms is None:
            return None
        slope = after.const - before.const
        return Lin(after.const, tuple(sorted((*terms, (atom, slope))))) if slope else Lin(after.const, terms)
    if type(before) is int and type(after) is int:
        return Lin(after, ((atom, after - before),))
    return None


def _followed(before: Lin, after: Lin, atom: int, atoms: Atoms) -> tuple[tuple[int, int], ...] | None:
    kept = set(before.terms) & set(after.terms)
    old, new = ([term for term in terms if term not in kept] for terms in (before.terms, after.terms))
    if len(old) != len(new):
        return None
    found = list(kept)
    for (was, c), (now, d) in zip(old, new, strict=True):
        if c != d or was not in atoms.places or now not in atoms.places:
            return None
        (family, old_place), (other, new_place) = atoms.places[was], atoms.places[now]
        if family != other:
            return None
        place = [between(i, j, atom, atoms) for i, j in zip(old_place, new_place, strict=True)]
        if None in place:
            return None
        found.append((atoms.member(family, tuple(place), atoms.low[now], atoms.high[now]), c))  # type: ignore[arg-type]
    return tuple(sorted(found))


def at(value: Value, atom: int, shift: int, keep: bool, atoms: Atoms) -> Value:
    """`value` with the atom replaced by `shift`, plus the atom itself if `keep`, also in the places of a family."""
    if type(value) is int:
        return value
    assert isinstance(value, Lin)
    c = next((c for other, c in value.terms if other == atom), 0)
    moved = {
        other: atoms.member(
            family, tuple([at(i, atom, shift, keep, atoms) for i in place]), atoms.low[other], atoms.high[other]
        )
        for other, _ in value.terms
        if other in atoms.places
        for family, place in (atoms.places[other],)
    }
    if not c and all(before == after for before, after in moved.items()):
        return value
    terms = tuple(sorted((moved.get(other, other), d) for other, d in value.terms if keep or other != atom))
    return Lin(value.const + c * shift, terms) if terms else value.const + c * shift

"""The state of the symbolic machine between two operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from schedc.ir.verify.contents import Contents, Layer
from schedc.ir.verify.linear import Atoms, Lin, Value
from schedc.ir.verify.logic import Condition, Facts

Counters = tuple[tuple[str, Value], ...]
Element = tuple[str, int]
"""One element of a semaphore or of a scalar array."""


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


@dataclass
class State:
    atoms: Atoms
    transfers: list[Transfer] = field(default_factory=list)
    """In flight, in the order of their starts."""
    taken: dict[Element, list[Taken]] = field(default_factory=dict)
    raised: dict[Element, list[Raised]] = field(default_factory=dict)
    contents: dict[str, Contents] = field(default_factory=dict)
    scalars: dict[Element, tuple[tuple[Value, Facts], ...]] = field(default_factory=dict)
    """Values that scalars were set to, oldest first, each with the guard under which it was."""
    versions: dict[str, int] = field(default_factory=dict)
    """Times that a scalar array was written."""

    def copy(self) -> State:
        return State(
            self.atoms,
            list(self.transfers),
            {key: list(entries) for key, entries in self.taken.items() if entries},
            {key: list(entries) for key, entries in self.raised.items() if entries},
            {space: contents.copy() for space, contents in self.contents.items()},
            dict(self.scalars),
            dict(self.versions),
        )

    def shape(self) -> object:
        """Everything but the values: two states of one shape differ in numbers only. Wants a `copy`'s tidy lists."""
        return (
            [
                (t.op, t.source.storage, t.target.storage, t.source.space, t.target.space, t.rows, t.semaphore,
                 t.skipped_by, len(t.counters), _kinds(t.guard))
                for t in self.transfers
            ],
            {k: [(x.op, x.rows, len(x.counters), _kinds(x.guard)) for x in xs] for k, xs in self.taken.items()},
            {k: [(x.op, x.amount, len(x.counters), _kinds(x.guard)) for x in xs] for k, xs in self.raised.items()},
            {
                space: (c.starts, [[(x.owner, x.op, _kinds(x.guard)) for x in layers] for layers in c.layers])
                for space, c in self.contents.items()
            },
            {key: [_kinds(guard) for _, guard in layers] for key, layers in self.scalars.items()},
        )  # fmt: skip

    def map(self, change: Callable[[Value], Value]) -> State:
        """A copy with every value replaced, visited in an order that depends on the shape alone."""

        interval = self.atoms.interval

        def facts(guard: Facts) -> Facts:
            return tuple(Condition(kind, change(value)) for kind, value in guard)

        def counters(pairs: Counters) -> Counters:
            return tuple((name, change(value)) for name, value in pairs)

        def access(a: Access) -> Access:
            base = change(a.base)
            if base == a.base:
                return a
            low, high = interval(base)
            return Access(a.space, a.storage, base, a.rows, a.first, a.lowest, a.highest, low, high + a.rows)

        def changed(entries: dict) -> dict:
            return {
                key: [replace(x, counters=counters(x.counters), guard=facts(x.guard)) for x in xs]
                for key, xs in sorted(entries.items())
                if xs
            }

        return State(
            self.atoms,
            [
                replace(t, counters=counters(t.counters), source=access(t.source), target=access(t.target),
                        guard=facts(t.guard))
                for t in self.transfers
            ],
            changed(self.taken),
            changed(self.raised),
            {
                space: Contents(
                    list(c.starts),
                    [tuple(Layer(x.owner, facts(x.guard), x.op) for x in layers) for layers in c.layers],
                )
                for space, c in sorted(self.contents.items())
            },
            {
                key: tuple((change(value), facts(guard)) for value, guard in layers)
                for key, layers in sorted(self.scalars.items())
            },
            dict(self.versions),
        )  # fmt: skip

    def values(self) -> list[Value]:
        found: list[Value] = []

        def see(value: Value) -> Value:
            found.append(value)
            return value

        self.map(see)
        return found


def _kinds(guard: Facts) -> tuple[str, ...]:
    return tuple(kind for kind, _ in guard)


def between(before: Value, after: Value, atom: int) -> Value | None:
    """The value that is `before` at atom = -1 and `after` at atom = 0, or None if it is not linear in it."""
    if before == after:
        return after
    if isinstance(before, Lin) and isinstance(after, Lin):
        if before.terms != after.terms:
            return None
        return Lin(after.const, tuple(sorted((*after.terms, (atom, after.const - before.const)))))
    if type(before) is int and type(after) is int:
        return Lin(after, ((atom, after - before),))
    return None


def at(value: Value, atom: int, shift: int, keep: bool) -> Value:
    """`value` with the atom replaced by `shift`, plus the atom itself if `keep`."""
    if type(value) is int:
        return value
    assert isinstance(value, Lin)
    c = next((c for other, c in value.terms if other == atom), 0)
    if not c:
        return value
    if keep:
        return Lin(value.const + c * shift, value.terms)
    terms = tuple(term for term in value.terms if term[0] != atom)
    return Lin(value.const + c * shift, terms) if terms else value.const + c * shift

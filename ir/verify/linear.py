"""Values of the symbolic machine: integers, or linear forms over atoms.

An atom stands for an integer that the machine does not know: an element of an input array, the
floor of a division, a product, a minimum or maximum, or the variable of an induction. Each has an
interval and, where it was made from other values, linear facts that tie it to them. Each also has
its value in a few hundred samples, worlds in which every input has some value of its range: what is
false in a sample need not be tried to be proven.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import gcd
from typing import NamedTuple

import numpy as np

SAMPLES = 512


class Lin(NamedTuple):
    """`const` + the sum of `coefficient` * atom, sorted by atom; never without a term."""

    const: int
    terms: tuple[tuple[int, int], ...]


Value = int | Lin


class Family(NamedTuple):
    """Integers of which each has a place: the elements of an array, or all that an operation ever sets them to."""

    array: str
    rank: int | None = None
    op: int = -1
    """The computation that sets them on device `rank`; its loop counters, then, are part of the place."""


def add(a: Value, b: Value) -> Value:
    if type(a) is int:
        return a + b if type(b) is int else Lin(a + b.const, b.terms)  # type: ignore[union-attr]
    if type(b) is int:
        return Lin(a.const + b, a.terms)  # type: ignore[union-attr]
    total = dict(a.terms)  # type: ignore[union-attr]
    for atom, coefficient in b.terms:  # type: ignore[union-attr]
        total[atom] = total.get(atom, 0) + coefficient
    return make(a.const + b.const, total)  # type: ignore[union-attr]


def make(const: int, terms: dict[int, int]) -> Value:
    kept = tuple(sorted((atom, coefficient) for atom, coefficient in terms.items() if coefficient))
    return Lin(const, kept) if kept else const


def eliminate(a: Lin, by_a: int, b: Lin, by_b: int) -> Value:
    """a * by_a - b * by_b."""
    total = {atom: c * by_a for atom, c in a.terms}
    for atom, c in b.terms:
        total[atom] = total.get(atom, 0) - c * by_b
    return make(a.const * by_a - b.const * by_b, total)


def scale(a: Value, by: int) -> Value:
    if type(a) is int:
        return a * by
    assert isinstance(a, Lin)
    return Lin(a.const * by, tuple((atom, c * by) for atom, c in a.terms)) if by else 0


def sub(a: Value, b: Value) -> Value:
    return add(a, scale(b, -1))


def coefficient_gcd(lin: Lin) -> int:
    return gcd(*(c for _, c in lin.terms))


class Atoms:
    """The atoms of one proof, numbered from 0; the same definition always gives the same atom."""

    def __init__(self) -> None:
        self.low: list[int] = []
        self.high: list[int] = []
        self.labels: list[str] = []
        self.facts: list[list[tuple[int, Lin]]] = []
        """Per atom, its coefficient in a value that is never negative, and the value: what defines it or others."""
        self.choices: list[tuple[str, tuple[Value, ...]] | None] = []
        """Per minimum or maximum, the operation and its terms."""
        self.inductions: set[int] = set()
        self.devices: dict[int, int] = {}
        """Per atom that a device has computed, its rank."""
        self.tables: dict[int, frozenset[int]] = {}
        """Per atom that is an element of a table, the values that it may have."""
        self.places: dict[int, tuple[Family, tuple[Value, ...]]] = {}
        """Per atom that is one of a family, the family and its place in it."""
        self._samples: list[np.ndarray | None] = []
        """Per atom, int64[samples], or None where none was asked for yet."""
        self._random = np.random.default_rng(0)
        self._scale = self._random.random(SAMPLES)
        self._known: dict[Hashable, int] = {}

    def atom(self, key: Hashable, low: int, high: int, label: str) -> int:
        return self._atom(key, low, high, label)[0]

    def _atom(self, key: Hashable, low: int, high: int, label: str) -> tuple[int, bool]:
        """The atom, and whether it is new."""
        if (known := self._known.get(key)) is not None:
            return known, False
        self._known[key] = self._new(low, high, label if len(label) < 200 else label[:200] + "…")
        return self._known[key], True

    def _define(self, *facts: Value) -> None:
        for fact in facts:
            if isinstance(fact, Lin):
                for atom, c in fact.terms:
                    self.facts[atom].append((c, fact))

    def member(self, family: Family, place: tuple[Value, ...], low: int, high: int) -> int:
        """The atom of one of a family of values in low..high of which nothing else is known."""
        if (atom := self._known.get((family, place))) is None:
            atom = self.atom((family, place), low, high, f"{family.array}[{self.text(place[0])}]")
            self.places[atom] = family, place
            if family.rank is not None:
                self.devices[atom] = family.rank
        return atom

    def induction(self, key: Hashable, high: int) -> int:
        """The atom that stands for every number of skipped periods from 0 to `high`.

        What was proven of it once holds for all those numbers, so a loop that is entered again may use it again:
        two inductions share a key only if no state mentions both of their atoms.
        """
        atom = self.atom(("induction", key, high), 0, high, "u")
        self.inductions.add(atom)
        return atom

    def _new(self, low: int, high: int, label: str) -> int:
        self.low.append(low)
        self.high.append(high)
        self.labels.append(label)
        self.facts.append([])
        self.choices.append(None)
        self._samples.append(None)
        return len(self.low) - 1

    def _draw(self, low: int, high: int) -> np.ndarray:
        """A third of the worlds scale all inputs alike, a third at random, a third are extreme; flags are random."""
        if high - low == 1:
            return low + (self._random.random(SAMPLES) < 0.7).astype(np.int64)
        kind = np.arange(SAMPLES) % 3
        unit = np.where(kind == 0, self._scale, self._random.random(SAMPLES) * self._scale)
        unit = np.where(kind == 2, self._random.integers(0, 2, SAMPLES), unit)
        return low + np.rint(unit * (high - low)).astype(np.int64)

    def _sample(self, atom: int) -> np.ndarray:
        if (known := self._samples[atom]) is None:
            known = self._samples[atom] = self._draw(self.low[atom], self.high[atom])
        return known

    def sample(self, value: Value) -> np.ndarray | int:
        """The value in every sample."""
        if type(value) is int:
            return value
        assert isinstance(value, Lin)
        total: np.ndarray | int = value.const
        for atom, c in value.terms:
            total = total + self._sample(atom) * c
        return total

    def interval(self, value: Value) -> tuple[int, int]:
        if type(value) is int:
            return value, value
        assert isinstance(value, Lin)
        low = high = value.const
        for atom, c in value.terms:
            a, b = self.low[atom] * c, self.high[atom] * c
            low, high = (low + a, high + b) if c > 0 else (low + b, high + a)
        return low, high

    def floordiv(self, value: Value, by: int) -> Value:
        if type(value) is int:
            return value // by
        assert isinstance(value, Lin)
        whole = make(value.const // by, {atom: c // by for atom, c in value.terms if c % by == 0})
        rest = make(value.const % by, {atom: c for atom, c in value.terms if c % by})
        if isinstance(rest, Lin) and (common := gcd(coefficient_gcd(rest), by)) > 1:
            rest = Lin(rest.const // common, tuple((atom, c // common) for atom, c in rest.terms))
            return add(whole, self.floordiv(rest, by // common))
        low, high = self.interval(rest)
        if low // by == high // by:
            return add(whole, low // by)
        atom, new = self._atom(("//", rest, by), low // by, high // by, f"({self.text(rest)})//{by}")
        itself = Lin(0, ((atom, 1),))
        if new:
            self._samples[atom] = np.asarray(self.sample(rest)) // by
            self._define(sub(rest, scale(itself, by)), sub(add(scale(itself, by), by - 1), rest))
        return add(whole, itself)

    def mod(self, value: Value, by: int) -> Value:
        return sub(value, scale(self.floordiv(value, by), by))

    def mul(self, x: Value, y: Value) -> Value:
        if type(x) is int:
            return scale(y, x)
        if type(y) is int:
            return scale(x, y)
        x, y = sorted((x, y))
        (a, b), (c, d) = self.interval(x), self.interval(y)
        corners = (a * c, a * d, b * c, b * d)
        label = f"({self.text(x)})*({self.text(y)})"
        atom, new = self._atom(("*", x, y), min(corners), max(corners), label)
        itself = Lin(0, ((atom, 1),))
        if new:
            self._samples[atom] = np.asarray(self.sample(x)) * self.sample(y)
            # (x-a)(y-c) >= 0, (b-x)(d-y) >= 0, (x-a)(d-y) >= 0, (b-x)(y-c) >= 0, with x*y replaced by the atom.
            self._define(
                add(sub(sub(itself, scale(y, a)), scale(x, c)), a * c),
                add(sub(sub(itself, scale(y, b)), scale(x, d)), b * d),
                sub(add(scale(x, d), scale(y, a)), add(itself, a * d)),
                sub(add(scale(y, b), scale(x, c)), add(itself, b * c)),
            )
        return itself

    def choice(self, op: str, terms: tuple[Value, ...]) -> Value:
        """`min` or `max` of values of which none is known to be the one."""
        ordered = tuple(sorted(set(terms), key=_order))
        if len(ordered) == 1:
            return ordered[0]
        pick = min if op == "min" else max
        intervals = [self.interval(value) for value in ordered]
        low, high = pick(low for low, _ in intervals), pick(high for _, high in intervals)
        label = f"{op}({', '.join(self.text(value) for value in ordered)})"
        atom, new = self._atom((op, ordered), low, high, label)
        itself = Lin(0, ((atom, 1),))
        sign = 1 if op == "max" else -1
        if new:
            values = np.stack([np.broadcast_to(self.sample(term), SAMPLES) for term in ordered])
            self._samples[atom] = values.min(0) if op == "min" else values.max(0)
            self._define(*(scale(sub(itself, term), sign) for term in ordered))
            self.choices[atom] = (op, ordered)
        return itself

    def lookup(self, name: str, values: tuple[int, ...], index: Lin, low: int, high: int) -> Value:
        """`values[index]` of a table of constants, with `index` in low..high."""
        part = values[low : high + 1]
        if min(part) == max(part):
            return part[0]
        key = ("table", name, index)
        atom, new = self._atom(key, min(part), max(part), f"{name}[{self.text(index)}]")
        if new:
            at = np.clip(np.asarray(self.sample(index)), 0, len(values) - 1)
            self._samples[atom] = np.asarray(values, np.int64)[at]
            self.tables[atom] = frozenset(part)
        return Lin(0, ((atom, 1),))

    def possible(self, value: Value) -> Sequence[int]:
        """The values that it may have: of a table those that are there, else all of its interval."""
        if isinstance(value, Lin) and len(value.terms) == 1:
            ((atom, c),) = value.terms
            if atom in self.tables:
                return sorted(value.const + c * entry for entry in self.tables[atom])
        low, high = self.interval(value)
        return range(low, high + 1)

    def snapped(self, value: Lin) -> Lin:
        """The same condition `value` >= 0, with a bound on an element of a table at one of its values."""
        ((atom, c), *more) = value.terms
        if more or atom not in self.tables or abs(c) != 1:
            return value
        bound = (
            min(x for x in self.tables[atom] if x >= -value.const)
            if c > 0
            else max(x for x in self.tables[atom] if x <= value.const)
        )
        return Lin(-c * bound, value.terms)

    def text(self, value: Value) -> str:
        if type(value) is int:
            return str(value)
        assert isinstance(value, Lin)
        parts = [self.labels[atom] if c == 1 else f"{c}*{self.labels[atom]}" for atom, c in value.terms]
        if value.const:
            parts.append(str(value.const))
        return " + ".join(parts).replace("+ -", "- ")


def _order(value: Value) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    return (1, value.const, value.terms) if isinstance(value, Lin) else (0, value, ())

"""Conditions, and what follows from them: the small prover behind every check.

A condition is `value >= 0`, `value == 0` or `value != 0` for a linear form. Facts are a tuple of
conditions that hold. `proves(v, facts)` shows v >= 0 by bounding every atom with its interval, and,
where that is too weak, by subtracting a positive multiple of a fact (v = v' + m*fact, so v' >= 0 is
enough), dividing by common factors as integers allow, and splitting a `max` into its terms. First
each atom is replaced by those that define it, newest first, which leads to the inputs in few steps
whatever else is made of those; then any fact is tried. It answers True only with such a derivation;
False means "not shown", never "false".
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import gcd
from typing import Literal, NamedTuple

import numpy as np

from schedc.ir.verify.linear import SAMPLES, Atoms, Lin, Value, add, coefficient_gcd, eliminate, make, scale, sub

_STEPS = 60
"""Goals that one search takes apart."""
_MORE_TERMS = 3
"""Terms that a goal may have more than the one that was asked."""
_DEFINITIONS = 400
"""Goals that are taken apart by definitions alone: the terms of a `max` over rows, with what each is made of."""
_LARGEST = 1 << 50
"""Goals beyond this come from multiplying facts in circles, and would not fit the samples' 64 bits."""


class Condition(NamedTuple):
    kind: Literal[">=", "==", "!=", "?"]
    """`?` is a condition that nothing proves and nothing contradicts."""
    value: Lin | int


MAYBE = Condition("?", 0)
Facts = tuple[Condition, ...]


class Cases:
    """How many cases may still be looked at one by one."""

    def __init__(self, left: int = 32) -> None:
        self._left = left

    def take(self) -> bool:
        self._left -= 1
        return self._left >= 0


class SplitError(Exception):
    """A decision changes within the range of an induction variable: it is uniform up to `high`."""

    def __init__(self, atom: int, high: int) -> None:
        self.atom, self.high = atom, high


class AbortError(Exception):
    """An induction cannot be carried through; the iterations are executed one by one instead."""


class Logic:
    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        self.steps = 0
        """Goals that all searches took apart."""
        self._proved: dict[tuple[Value, Facts], bool] = {}
        self._negations: dict[Condition, Condition | bool] = {}
        self._picked: dict[tuple[str, Value, Value, Facts], Value] = {}
        self._reach: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {}
        self._lins: dict[Facts, dict[int, list[tuple[int, Lin]]]] = {}
        self._worlds: dict[Facts, int] = {}
        """A bit for each sample that satisfies the facts."""
        self._negative: dict[Value, int] = {}
        """A bit for each sample that makes the value negative."""
        self._impossible: dict[Facts, bool] = {}

    def compare(self, op: str, left: Value, right: Value) -> Condition | bool:
        """The condition in its normal form, or its truth where no fact is needed."""
        match op:
            case "<":
                return self.normal(">=", add(sub(right, left), -1))
            case "<=":
                return self.normal(">=", sub(right, left))
            case ">":
                return self.normal(">=", add(sub(left, right), -1))
            case ">=":
                return self.normal(">=", sub(left, right))
            case _:
                return self.normal(op, sub(left, right))

    def normal(self, kind: str, value: Value) -> Condition | bool:
        low, high = self.atoms.interval(value)
        if kind == ">=":
            if low >= 0:
                return True
            if high < 0:
                return False
            return Condition(">=", self.atoms.snapped(_tight(value)))
        if low > 0 or high < 0:
            return kind == "!="
        if type(value) is int:
            return kind == "=="
        assert isinstance(value, Lin)
        common = coefficient_gcd(value)
        if value.const % common:
            return kind == "!="
        if low == 0:
            return self.normal(">=", scale(value, -1) if kind == "==" else add(value, -1))
        if high == 0:
            return self.normal(">=", value if kind == "==" else add(scale(value, -1), -1))
        sign = 1 if value.terms[0][1] > 0 else -1
        divided = Lin(value.const // common * sign, tuple((atom, c // common * sign) for atom, c in value.terms))
        return Condition("==" if kind == "==" else "!=", divided)

    def negation(self, condition: Condition) -> Condition | bool:
        if (known := self._negations.get(condition)) is None:
            known = self._negations[condition] = self._negate(condition)
        return known

    def _negate(self, condition: Condition) -> Condition | bool:
        match condition.kind:
            case ">=":
                return self.normal(">=", add(scale(condition.value, -1), -1))
            case "==":
                return self.normal("!=", condition.value)
            case "!=":
                return self.normal("==", condition.value)
            case _:
                return MAYBE

    def sharpened(self, condition: Condition, facts: Facts) -> Condition | None:
        """The condition, where the facts allow as an inequality; None if they contradict it."""
        if self.contradicted(condition, facts):
            return None
        if condition.kind == "!=":
            for value in (condition.value, scale(condition.value, -1)):
                if self.proves(value, facts):
                    sharper = self.normal(">=", add(value, -1))
                    return sharper if isinstance(sharper, Condition) else condition
        return condition

    def split(self, condition: Condition, facts: Facts) -> Iterator[Facts]:
        """The facts with the condition, and with its negation, where that is possible."""
        for case in (condition, self.negation(condition)):
            if isinstance(case, Condition) and (sharp := self.sharpened(case, facts)) is not None:
                yield (*facts, sharp)

    def implied(self, condition: Condition, facts: Facts) -> bool:
        kind, value = condition
        if kind == "?":
            return False
        if condition in facts:
            return True
        if kind == ">=":
            return self.proves(value, facts)
        if kind == "==":
            return self.proves(value, facts) and self.proves(scale(value, -1), facts)
        return self.proves(add(value, -1), facts) or self.proves(add(scale(value, -1), -1), facts)

    def contradicted(self, condition: Condition, facts: Facts) -> bool:
        if condition.kind == "?":
            return False
        negated = self.negation(condition)
        return negated if isinstance(negated, bool) else self.implied(negated, facts)

    def device_of(self, condition: Condition) -> int | None:
        """The device that has computed for itself what the condition is about."""
        value = condition.value
        devices = [self.atoms.devices.get(atom) for atom, _ in value.terms] if isinstance(value, Lin) else []
        return next((device for device in devices if device is not None), None)

    def excluded(self, guard: Facts, facts: Facts) -> bool:
        """Whether the guard cannot hold together with the facts."""
        return any(self.contradicted(condition, facts) for condition in guard)

    def impossible(self, guard: Facts) -> bool:
        """Whether the guard contradicts itself."""
        if (known := self._impossible.get(guard)) is None:
            known = self._impossible[guard] = any(self.contradicted(condition, guard) for condition in guard)
        return known

    def decide(self, condition: Condition, facts: Facts) -> bool | None:
        """True or False where the facts decide it. `SplitError` if only an induction variable leaves it open."""
        if self.implied(condition, facts):
            return True
        if self.contradicted(condition, facts):
            return False
        self._split(condition)
        return None

    def _split(self, condition: Condition) -> None:
        value = condition.value
        if type(value) is int or not all(atom in self.atoms.inductions for atom, _ in value.terms):  # type: ignore[union-attr]
            return
        assert isinstance(value, Lin)
        if len(value.terms) > 1:
            raise AbortError
        ((atom, c),) = value.terms
        at_zero = value.const
        if condition.kind == ">=":
            # c*u + const changes its sign once: the last u on the same side as u = 0.
            high = at_zero // -c if at_zero >= 0 else -(at_zero // c) - 1
        else:
            meets = -at_zero // c if at_zero % c == 0 else self.atoms.high[atom] + 1
            high = meets - 1 if meets > 0 else 0
        raise SplitError(atom, high)

    def pick(self, op: str, left: Value, right: Value, facts: Facts) -> Value:
        """`min` or `max` of two values. Raises `SplitError` as `decide` does."""
        if type(left) is int and type(right) is int:
            return min(left, right) if op == "min" else max(left, right)
        key = (op, left, right, facts)
        if (known := self._picked.get(key)) is None:
            known = self._picked[key] = self._pick(op, left, right, facts)
        return known

    def _pick(self, op: str, left: Value, right: Value, facts: Facts) -> Value:
        less = self.compare("<=", left, right)
        if isinstance(less, Condition):
            decided = self.decide(less, facts)
            if decided is None:
                return self.atoms.choice(op, (*self._terms(op, left), *self._terms(op, right)))
            less = decided
        return left if less == (op == "min") else right

    def _terms(self, op: str, value: Value) -> tuple[Value, ...]:
        if isinstance(value, Lin) and value.const == 0 and len(value.terms) == 1 and value.terms[0][1] == 1:
            choice = self.atoms.choices[value.terms[0][0]]
            if choice is not None and choice[0] == op:
                return choice[1]
        return (value,)

    def proves(self, value: Value, facts: Facts) -> bool:
        """Whether `value` >= 0 is shown."""
        if type(value) is int:
            return value >= 0
        low, high = self.atoms.interval(value)
        if low >= 0 or high < 0:
            return low >= 0
        key = (value, facts)
        if (known := self._proved.get(key)) is None:
            self._proved[key] = False
            known = self._proved[key] = self._by_definitions(value, facts) or self._search(value, facts)
        return known

    def reach(self, value: Value) -> tuple[int, int]:
        """Bounds of the value that need no fact: its interval, or the least and most of its samples if proven."""
        if type(value) is int:
            return value, value
        assert isinstance(value, Lin)
        if len(value.terms) == 1:
            return self.atoms.interval(value)
        if (known := self._reach.get(value.terms)) is None:
            moving = Lin(0, value.terms)
            low, high = self.atoms.interval(moving)
            sample = np.asarray(self.atoms.sample(moving))
            least, most = int(sample.min()), int(sample.max())
            if low < least and self.proves(add(moving, -least), ()):
                low = least
            if most < high and self.proves(sub(most, moving), ()):
                high = most
            known = self._reach[value.terms] = low, high
        return value.const + known[0], value.const + known[1]

    def _refuted(self, value: Value, facts: Facts) -> bool:
        """Whether some sample satisfies the facts and makes `value` negative."""
        if (worlds := self._worlds.get(facts)) is None:
            found = np.ones(SAMPLES, dtype=bool)
            for kind, fact in facts:
                sample = np.asarray(self.atoms.sample(fact))
                found &= sample >= 0 if kind == ">=" else sample == 0 if kind == "==" else sample != 0
            worlds = self._worlds[facts] = _bits(found)
        if (negative := self._negative.get(value)) is None:
            negative = self._negative[value] = _bits(np.broadcast_to(np.asarray(self.atoms.sample(value)) < 0, SAMPLES))
        return worlds & negative != 0

    def _linear(self, facts: Facts) -> dict[int, list[tuple[int, Lin]]]:
        """Per atom, its coefficient in a fact, and the fact."""
        if (lins := self._lins.get(facts)) is None:
            found: list[Lin] = []
            for kind, value in facts:
                if isinstance(value, Lin) and kind in (">=", "=="):
                    found.append(value)
                    if kind == "==":
                        found.append(Lin(-value.const, tuple((atom, -c) for atom, c in value.terms)))
            lins = self._lins[facts] = {}
            for fact in found:
                for atom, c in fact.terms:
                    lins.setdefault(atom, []).append((c, fact))
        return lins

    def _by_definitions(self, goal: Value, facts: Facts) -> bool:
        """Whether `goal` >= 0 follows when its newest atom is replaced by older ones, and so on down to the inputs."""
        linear = self._linear(facts)
        steps = 0

        def holds(value: Value) -> bool:
            nonlocal steps
            if isinstance(value, Lin):
                value = _weakest(value)
            low, high = self.atoms.interval(value)
            if low >= 0 or not _may_hold(low, high) or steps == _DEFINITIONS or self._refuted(value, facts):
                return low >= 0
            steps += 1
            self.steps += 1
            assert isinstance(value, Lin)
            atom, c = value.terms[-1]
            choice = self.atoms.choices[atom]
            if choice is not None and (c < 0) == (choice[0] == "max"):
                others = Lin(value.const, value.terms[:-1]) if len(value.terms) > 1 else value.const
                return all(holds(add(others, scale(term, c))) for term in choice[1])
            return any(
                fact.terms[-1][0] == atom and f * c > 0 and holds(_without(value, c, fact, f))
                for f, fact in (*linear.get(atom, ()), *self.atoms.facts[atom])
            )

        return holds(goal)

    def _search(self, goal: Value, facts: Facts, splits: int = 1) -> bool:
        """Best first: goals of few terms, then of few steps. Goals that some sample refutes are dropped."""
        linear = self._linear(facts)
        seen: set[Value] = set()
        open_goals: list[tuple[int, int, Value]] = []
        steps = 0
        most = (len(goal.terms) if isinstance(goal, Lin) else 0) + _MORE_TERMS

        def consider(value: Value, cost: int) -> bool:
            """Whether `value` >= 0 is plain; otherwise remember it if it may be worth a try."""
            if isinstance(value, Lin):
                value = _weakest(value)
            low, high = self.atoms.interval(value)
            if low >= 0:
                return True
            if isinstance(value, Lin) and _may_hold(low, high) and len(value.terms) <= most and value not in seen:
                seen.add(value)
                if not self._refuted(value, facts):
                    heappush(open_goals, (len(value.terms) + cost, cost, value))
            return False

        if consider(goal, 0):
            return True
        while open_goals and steps < _STEPS:
            _, cost, value = heappop(open_goals)
            steps += 1
            self.steps += 1
            assert isinstance(value, Lin)
            for atom, c in value.terms:
                for f, fact in (*linear.get(atom, ()), *self.atoms.facts[atom]):
                    if f * c > 0 and consider(_without(value, c, fact, f), cost + 1):
                        return True
                if splits and self._by_choice(value, atom, c, facts, splits - 1):
                    return True
        return False

    def _by_choice(self, value: Lin, atom: int, c: int, facts: Facts, splits: int) -> bool:
        """Whether `value` >= 0 holds for every term that this minimum or maximum can be."""
        choice = self.atoms.choices[atom]
        if choice is None or (c < 0) != (choice[0] == "max"):
            return False
        others = make(value.const, {other: k for other, k in value.terms if other != atom})
        return all(self._search(add(others, scale(term, c)), facts, splits) for term in choice[1])


def _bits(samples: np.ndarray) -> int:
    """bool[samples] as the bits of a number."""
    return int.from_bytes(np.packbits(samples).tobytes(), "big")


def _without(value: Lin, c: int, fact: Lin, f: int) -> Value:
    """What is left of the atom that has `c` in the value and `f` in the fact: if it is >= 0, so is the value."""
    common = gcd(f, c)
    times = abs(f) // common
    # A whole number is >= 0 when it is > -1: `times` of it, when they are >= 1 - times.
    return add(eliminate(value, times, fact, abs(c) // common), times - 1)


def _may_hold(low: int, high: int) -> bool:
    """Whether a goal in low..high is worth a try."""
    return high >= 0 and low > -_LARGEST and high < _LARGEST


def _tight(value: Value) -> Lin:
    """`value >= 0` with coprime coefficients."""
    assert isinstance(value, Lin)
    common = coefficient_gcd(value)
    return Lin(value.const // common, tuple((atom, c // common) for atom, c in value.terms))


def _weakest(value: Lin) -> Lin:
    """The largest form that is >= 0 exactly when `value` is: the other terms only move in steps of their gcd."""
    common = coefficient_gcd(value)
    return Lin(value.const // common * common + common - 1, value.terms)

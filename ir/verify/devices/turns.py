"""Buffers that share rows of a pool but take turns in them: which row of the one is which of the other never matters.

Followed is, on the device that is proven in full, what is in use of each of them: rows that were written and are read
later, or that a transfer has from its start to its end. Any access to a buffer, wherever in it, ends what was in use of
all others that share rows with it. Where nothing that was ended so is used again, no access to one of them meets
anything of another, whatever rows of theirs they are: each may be renamed by a bijection of its own.
"""

from __future__ import annotations

from itertools import combinations

from schedc.ir.program import Program
from schedc.ir.verify.contents import Contents, Layer
from schedc.ir.verify.logic import Facts, Logic
from schedc.ir.verify.state import Access, State


def sharing(program: Program) -> list[tuple[str, str]]:
    """Pairs of buffers that have rows of a pool in common."""
    placed = [(b, range(b.address, b.address + b.rows * b.slots)) for b in program.buffers if b.address is not None]
    return [
        (a.name, b.name)
        for (a, mine), (b, theirs) in combinations(placed, 2)
        if a.pool == b.pool and mine.start < theirs.stop and theirs.start < mine.stop
    ]


class Turns:
    def __init__(self, program: Program, moving: frozenset[str]) -> None:
        """`moving` are the storages that may be in other rows on other devices."""
        self._pairs = sharing(program)
        self._rows = {
            b.name: (b.address, b.address + b.rows * b.slots) for b in program.buffers if b.address is not None
        }
        self._others: dict[str, list[str]] = {}
        for pair in self._pairs:
            if moving & set(pair):
                for mine, other in (pair, pair[::-1]):
                    self._others.setdefault(mine, []).append(other)
        self._mixed: set[str] = set()
        """Those of which something was used after another one was accessed."""

    def spaces(self) -> dict[str, Contents]:
        """What is known of each, before anything was executed: parts of a state."""
        return {_space(name): Contents() for name in self._others}

    def read(self, state: State, access: Access, facts: Facts, logic: Logic) -> None:
        if access.space and access.storage in self._others:
            self._check(state, access, facts, logic)
            self._end_others(state, access.storage, facts, logic)

    def write(self, state: State, access: Access, facts: Facts, logic: Logic) -> None:
        """Also from the start of a transfer that writes: the rows are in use from then on."""
        if access.space and access.storage in self._others:
            self._end_others(state, access.storage, facts, logic)
            if type(access.base) is int:
                layer = Layer(access.storage, facts, 0)
                state.contents[_space(access.storage)].write(access.lowest, access.highest, layer, logic)

    def end(self, state: State, access: Access, facts: Facts, logic: Logic) -> None:
        """A transfer does not use these rows any more."""
        if access.space and access.storage in self._others:
            self._check(state, access, facts, logic)

    def rooms(self) -> dict[str, str]:
        """Of buffers that share rows, a name for those that have to be renamed together."""
        room: dict[str, str] = {}

        def find(name: str) -> str:
            while (other := room.setdefault(name, name)) != name:
                name = other
            return name

        for a, b in self._pairs:
            if not (a in self._others and b in self._others[a]) or self._mixed & {a, b}:
                room[find(a)] = find(b)
        return {name: find(name) for pair in self._pairs for name in pair}

    def _check(self, state: State, access: Access, facts: Facts, logic: Logic) -> None:
        name = access.storage
        if name not in self._mixed:
            contents = state.contents[_space(name)]
            if contents.fault(access.lowest, access.highest, name, facts, logic) is not None:
                self._mixed.add(name)

    def _end_others(self, state: State, name: str, facts: Facts, logic: Logic) -> None:
        ended = Layer("", facts, -1)
        for other in self._others[name]:
            contents = state.contents[_space(other)]
            if facts:
                contents.write(*self._rows[other], ended, logic)
            elif contents.layers != [(ended,)]:
                state.contents[_space(other)] = Contents([0], [(ended,)])


def _space(name: str) -> str:
    return f"turns of {name}"

"""What a search may change, and when: first the order alone, then also collectives, then also the placement.

So a search says what each is worth. A later stage goes on with what may be changed before, so that what it gains is
that of its own dimension and of the rounds that it has more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedc.explore.search.neighbours import COLLECTIVES, ORDER, WIRES, Kind


@dataclass(frozen=True)
class Stage:
    """`kinds`: what is changed about plans, by how often. `settings`: numbers of the settings that are tried beside the
    first one, of which the best few are carried on."""

    name: str
    kinds: Mapping[Kind, float]
    settings: tuple[int, ...] = ()

    @property
    def told(self) -> str:
        """All that follows from it, in words."""
        return f"{self.name} {sorted(kind.__name__ for kind in self.kinds)} {self.settings}"


def stages_of(sums: bool, wires: bool, settings: int) -> tuple[Stage, ...]:
    """`sums`: whether devices sum anything. `wires`: whether the formats of what they send may change. `settings`: how
    many there are, one for each placement that may be tried."""
    kinds, found = ORDER, [Stage("order", ORDER)]
    if sums:
        kinds = {**kinds, **COLLECTIVES, **(WIRES if wires else {})}
        found.append(Stage("collectives", kinds))
    if settings > 1:
        found.append(Stage("placement", kinds, tuple(range(1, settings))))
    return tuple(found)


def stage_of(stages: Sequence[Stage], done: int, rounds: int) -> int:
    """The number of the stage that a round belongs to: all have as many rounds, the first ones one more."""
    each, more = divmod(rounds, len(stages))
    ends = [sum(each + (index < more) for index in range(last + 1)) for last in range(len(stages))]
    return next((index for index, end in enumerate(ends) if done < end), len(stages) - 1)

"""The search: rounds in which the best plans so far, and plans beside them, are annealed.

Beam search over what decides the step graph, annealing over the orderings of each graph. Everything follows from the
seed and the rounds: what a task does depends on its own random numbers alone, wherever it runs. A limit of seconds ends
the search after a round, with what it has found so far.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from schedc.errors import UserError
from schedc.explore.executors import Executor
from schedc.explore.search.improve import Outcome, Task, improve
from schedc.explore.search.neighbours import neighbour
from schedc.explore.setting import Setting, prepared
from schedc.schedule.plan import Plan
from schedc.schedule.plan_file import plan_from_dict, plan_to_dict

KEPT = 10
"""Plans that a round begins with."""

WIDTH = 8
"""Tasks of a round."""

FINALISTS = 5
"""Plans that the full simulation decides between."""


@dataclass(frozen=True)
class Effort:
    """How long to search: `rounds`, of tasks of `steps` changes each, or at most `seconds`."""

    rounds: int = 20
    steps: int = 20_000
    seconds: float = inf
    seed: int = 0


@dataclass(frozen=True)
class Member:
    """A plan of the population, its step by the fast simulation, and the setting it is of."""

    plan: Plan
    step_ns: float
    setting: int = 0


@dataclass
class State:
    """Where a search is: what another process needs to go on."""

    key: str
    round: int = 0
    simulated: int = 0
    members: list[Member] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """All or nothing. Raises UserError if it cannot be written."""
        data = {**asdict(self), "members": [
            {"plan": plan_to_dict(m.plan), "step_ns": m.step_ns, "setting": m.setting} for m in self.members
        ]}  # fmt: skip
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            draft.write_text(json.dumps(data), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise UserError(f"{path}: the state cannot be written: {error.strerror or error}") from None

    @classmethod
    def read(cls, path: Path, key: str) -> State:
        """Raises UserError for a file of another search."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            members = [
                Member(plan_from_dict(m["plan"]), float(m["step_ns"]), int(m["setting"])) for m in data["members"]
            ]
            state = cls(data["key"], int(data["round"]), int(data["simulated"]), members)
        except OSError as error:
            raise UserError(f"{path}: the state cannot be read: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, UserError) as error:
            raise UserError(f"{path} is not the state of a search ({error}); remove it, or name another file") from None
        if state.key != key:
            raise UserError(f"{path} is the state of another search ({state.key}, not {key}); name another file")
        return state


@dataclass(frozen=True)
class Found:
    """The best plan by the full simulation, and the setting it is of."""

    plan: Plan
    step_ns: float
    setting: Setting
    simulated: int
    rounds: int
    finalists: tuple[tuple[Plan, float, Setting], ...]


Report = Callable[[int, int, float, int], None]
"""Is told after every round: rounds done, rounds in all, ns of the best plan, orderings simulated."""


def search(
    settings: Sequence[Setting],
    starts: Sequence[tuple[int, Plan]],
    effort: Effort,
    executor: Executor,
    state_file: Path | None = None,
    report: Report = lambda done, rounds, best, simulated: None,
) -> Found:
    """The best plan of any of `settings`, from `starts`, which are (number of the setting, plan).

    With `state_file` a search that was interrupted goes on where it was. An interrupt ends it with what it has found;
    before anything has been found it is passed on. Raises UserError if no start can be built and fits.
    """
    key = _key(settings, effort)
    state = State.read(state_file, key) if state_file and state_file.exists() else State(key)
    if state_file:
        state.write(state_file)
    began = perf_counter()
    try:
        if not state.members:
            _round(state, settings, [Task(settings[s], plan, effort.seed, 0) for s, plan in starts],
                   [s for s, _ in starts], executor)  # fmt: skip
            report(0, effort.rounds, state.members[0].step_ns, state.simulated)
        while state.round < effort.rounds and perf_counter() - began < effort.seconds:
            numbers, tasks = _tasks(state, settings, effort)
            _round(state, settings, tasks, numbers, executor)
            state.round += 1
            report(state.round, effort.rounds, state.members[0].step_ns, state.simulated)
            if state_file:
                state.write(state_file)
    except KeyboardInterrupt:
        if not state.members:
            raise
    return _decided(state, settings)


def _key(settings: Sequence[Setting], effort: Effort) -> str:
    """Names all that the rounds follow from, in words what a reader may have changed."""
    first = settings[0]
    told = f"{first.spec.name} on {first.target.name}, devices {first.shape.devices}, rows {first.shape.rows}"
    digest = hashlib.sha256(repr(tuple(settings)).encode()).hexdigest()[:12]
    return (
        f"{told}, context {first.shape.context}, seed {effort.seed}, steps {effort.steps}, model and options {digest}"
    )


def _tasks(state: State, settings: Sequence[Setting], effort: Effort) -> tuple[list[int], list[Task]]:
    numbers, tasks = [], []
    for index in range(WIDTH):
        random = Random(f"{effort.seed} {state.round} {index}")
        parent = state.members[min(int(random.expovariate(0.4)), len(state.members) - 1)]
        plan, number = parent.plan, parent.setting
        if len(settings) > 1 and random.random() < 0.2:
            number = random.randrange(len(settings))
        elif random.random() < 0.75:
            plan = neighbour(prepared(settings[number]).problem, plan, random)
        numbers.append(number)
        tasks.append(Task(settings[number], plan, random.randrange(2**31), effort.steps))
    return numbers, tasks


def _round(
    state: State, settings: Sequence[Setting], tasks: Sequence[Task], numbers: Sequence[int], executor: Executor
) -> None:
    outcomes: list[Outcome] = list(executor.map(improve, tasks))
    state.simulated += sum(outcome.simulated for outcome in outcomes)
    found = [
        Member(outcome.plan, outcome.step_ns, number)
        for outcome, number in zip(outcomes, numbers, strict=True)
        if outcome.step_ns < inf
    ]
    if not found and not state.members:
        raise UserError(f"no plan to start from can be built and fits: {outcomes[0].reason}")
    state.members = _best(state.members + found)


def _best(members: Sequence[Member]) -> list[Member]:
    """The fastest, of equal times one."""
    kept: dict[float, Member] = {}
    for member in sorted(members, key=lambda member: member.step_ns):
        kept.setdefault(round(member.step_ns, 1), member)
    return list(kept.values())[:KEPT]


def _decided(state: State, settings: Sequence[Setting]) -> Found:
    """Between the finalists by the full simulation."""
    scored = [
        (member.plan, prepared(settings[member.setting]).step_ns(member.plan), settings[member.setting])
        for member in state.members[:FINALISTS]
    ]
    scored.sort(key=lambda entry: entry[1])
    plan, step_ns, setting = scored[0]
    return Found(plan, step_ns, setting, state.simulated, state.round, tuple(scored))

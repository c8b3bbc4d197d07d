"""The search: rounds in which the best plans so far, and plans beside them, are annealed.

Beam search over what decides the step graph, annealing over the orderings of each graph, in stages that may change more
and more (stages.py). Everything follows from the seed and the rounds: what a task does depends on its own random
numbers alone, wherever it runs. A limit of seconds ends the search after a round, with what it has found so far.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from time import perf_counter

from schedc.errors import UserError
from schedc.explore.executors import Executor
from schedc.explore.search.improve import Outcome, Task, improve
from schedc.explore.search.neighbours import KINDS, neighbour
from schedc.explore.search.stages import Stage, stage_of
from schedc.explore.search.state import Member, State
from schedc.explore.setting import Setting, prepared
from schedc.schedule.plan import Plan

KEPT = 10
"""Plans that a round begins with."""

WIDTH = 8
"""Tasks of a round."""

FINALISTS = 5
"""Plans that the full simulation decides between."""

CARRIED = 3
"""Settings that a stage of other settings goes on with, and `OF_EACH` plans of each that are kept."""

OF_EACH = 2

EVERYTHING = (Stage("all", KINDS),)


@dataclass(frozen=True)
class Effort:
    """How long to search: `rounds`, of tasks of `steps` changes each, or at most `seconds`."""

    rounds: int = 20
    steps: int = 20_000
    seconds: float = inf
    seed: int = 0


@dataclass(frozen=True)
class Reached:
    """What a stage of the search ended with; "start" before the first."""

    stage: str
    step_ns: float
    plan: Plan
    setting: Setting


@dataclass(frozen=True)
class Found:
    """The best plan by the full simulation, and the setting it is of."""

    plan: Plan
    step_ns: float
    setting: Setting
    simulated: int
    rounds: int
    finalists: tuple[tuple[Plan, float, Setting], ...]
    reached: tuple[Reached, ...] = ()


Report = Callable[[int, int, float, int], None]
"""Is told after every round: rounds done, rounds in all, ns of the best plan, orderings simulated."""


def search(
    settings: Sequence[Setting],
    starts: Sequence[tuple[int, Plan]],
    effort: Effort,
    executor: Executor,
    state_file: Path | None = None,
    report: Report = lambda done, rounds, best, simulated: None,
    stages: Sequence[Stage] = EVERYTHING,
) -> Found:
    """The best plan of any of `settings`, from `starts`, which are (number of the setting, plan).

    With `state_file` a search that was interrupted goes on where it was. An interrupt ends it with what it has found;
    before anything has been found it is passed on. Raises UserError if no start can be built and fits.
    """
    key = _key(settings, effort, stages)
    state = State.read(state_file, key) if state_file and state_file.exists() else State(key)
    if state_file:
        state.write(state_file)
    began = perf_counter()
    try:
        if not state.members:
            _round(state, [(s, Task(settings[s], plan, effort.seed, 0)) for s, plan in starts if s == 0], executor)
            state.ends = [state.members[0]]
            report(0, effort.rounds, state.members[0].step_ns, state.simulated)
        while state.round < effort.rounds and perf_counter() - began < effort.seconds:
            stage = stages[stage_of(stages, state.round, effort.rounds)]
            if stage.settings and not state.carried:
                _carry(state, settings, stage, starts, effort, executor)
            _round(state, _tasks(state, settings, effort, stage), executor)
            state.round += 1
            ended = stage_of(stages, state.round, effort.rounds) if state.round < effort.rounds else len(stages)
            state.ends += [state.members[0]] * (ended + 1 - len(state.ends))
            report(state.round, effort.rounds, state.members[0].step_ns, state.simulated)
            if state_file:
                state.write(state_file)
    except KeyboardInterrupt:
        if not state.members:
            raise
    return _decided(state, settings, stages)


def _key(settings: Sequence[Setting], effort: Effort, stages: Sequence[Stage]) -> str:
    """Names all that the rounds follow from, in words what a reader may have changed."""
    first = settings[0]
    told = f"{first.spec.name} on {first.target.name}, devices {first.shape.devices}, rows {first.shape.rows}"
    followed = repr((tuple(settings), effort.rounds if len(stages) > 1 else 0, [stage.told for stage in stages]))
    digest = hashlib.sha256(followed.encode()).hexdigest()[:12]
    return (
        f"{told}, context {first.shape.context}, seed {effort.seed}, steps {effort.steps}, model and options {digest}"
    )


def _carry(
    state: State,
    settings: Sequence[Setting],
    stage: Stage,
    starts: Sequence[tuple[int, Plan]],
    effort: Effort,
    executor: Executor,
) -> None:
    """Which of the settings of a stage it goes on with: those whose starts are the fastest, as they are."""
    tasks = [(s, Task(settings[s], plan, effort.seed, 0)) for s, plan in starts if s in stage.settings]
    best = state.members[0].plan
    tasks += [(s, Task(settings[s], best, effort.seed, 0)) for s in stage.settings]
    found = sorted(_outcomes(state, tasks, executor), key=lambda member: member.step_ns)
    state.carried = list(dict.fromkeys(member.setting for member in found))[:CARRIED]
    state.members = _best(state.members + found, state.carried)


def _tasks(state: State, settings: Sequence[Setting], effort: Effort, stage: Stage) -> list[tuple[int, Task]]:
    tasks = []
    for index in range(WIDTH):
        random = Random(f"{effort.seed} {state.round} {index}")
        members = state.members
        if state.carried and random.random() < 0.5:
            other = random.choice(state.carried)
            members = [member for member in members if member.setting == other] or members
        parent = members[min(int(random.expovariate(0.4)), len(members) - 1)]
        plan, number = parent.plan, parent.setting
        if random.random() < 0.75:
            plan = neighbour(prepared(settings[number]).problem, plan, random, stage.kinds)
        tasks.append((number, Task(settings[number], plan, random.randrange(2**31), effort.steps)))
    return tasks


def _round(state: State, tasks: Sequence[tuple[int, Task]], executor: Executor) -> None:
    found = _outcomes(state, tasks, executor)
    state.members = _best(state.members + found, state.carried)


def _outcomes(state: State, tasks: Sequence[tuple[int, Task]], executor: Executor) -> list[Member]:
    """What tasks (number of the setting, task) have found that can be built and fits."""
    outcomes: list[Outcome] = list(executor.map(improve, [task for _, task in tasks]))
    state.simulated += sum(outcome.simulated for outcome in outcomes)
    found = [
        Member(outcome.plan, outcome.step_ns, number)
        for outcome, (number, _) in zip(outcomes, tasks, strict=True)
        if outcome.step_ns < inf
    ]
    if not found and not state.members:
        raise UserError(f"no plan to start from can be built and fits: {outcomes[0].reason}")
    return found


def _best(members: Sequence[Member], carried: Sequence[int]) -> list[Member]:
    """The fastest, of equal times one; and some of each setting that is carried on."""
    kept: dict[float, Member] = {}
    for member in sorted(members, key=lambda member: member.step_ns):
        kept.setdefault(round(member.step_ns, 1), member)
    ranked = list(kept.values())
    others = [one for s in carried for one in [m for m in ranked[KEPT:] if m.setting == s][:OF_EACH]]
    return ranked[:KEPT] + sorted(others, key=lambda member: member.step_ns)


def _decided(state: State, settings: Sequence[Setting], stages: Sequence[Stage]) -> Found:
    """Between the finalists by the full simulation."""

    def full_ns(member: Member) -> float:
        return prepared(settings[member.setting]).step_ns(member.plan)

    scored = [(member.plan, full_ns(member), settings[member.setting]) for member in state.members[:FINALISTS]]
    scored.sort(key=lambda entry: entry[1])
    plan, step_ns, setting = scored[0]
    reached = [
        Reached(name, full_ns(member), member.plan, settings[member.setting])
        for name, member in zip(["start", *(stage.name for stage in stages)], state.ends, strict=False)
    ]
    if len(reached) == len(stages) + 1:
        reached[-1] = Reached(stages[-1].name, step_ns, plan, setting)
    return Found(plan, step_ns, setting, state.simulated, state.round, tuple(scored), tuple(reached))

"""The proof of a program that runs on several devices.

First the communication alone: which devices wait for what, in every world of conditions that decide it.
That gives, for each device, after which of its own events a peer's transfer may begin to arrive. With
that known, each device is proven by itself: an arrival is a transfer in flight from there to the wait
that cannot do without it. Between devices nothing else is shared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from schedc.ir.program import Compute
from schedc.ir.verify.context import Context, EnoughError, UndecidedError
from schedc.ir.verify.devices.events import Event
from schedc.ir.verify.devices.frontier import Outcome, Sent, Stuck, View, run_all, views_of
from schedc.ir.verify.devices.placed import ByRank, Placed
from schedc.ir.verify.devices.record import Recorder
from schedc.ir.verify.devices.roles import Roles
from schedc.ir.verify.devices.turns import Turns
from schedc.ir.verify.devices.twins import Twins
from schedc.ir.verify.devices.witness import Witness
from schedc.ir.verify.logic import Condition, Facts
from schedc.ir.verify.peers import Peers
from schedc.ir.verify.state import Transfer
from schedc.ir.verify.verdict import Place, Refusal, Statistics

_MOST_WORLDS = 256


def verify_devices(context: Context) -> Statistics:
    total = Statistics()
    try:
        roles = Roles(context.program)
        for world, traces in _worlds(context):
            total += _verify_world(context, roles, world, traces)
    except EnoughError:
        pass
    return total


def _worlds(context: Context) -> Iterator[tuple[Facts, list[list[Event]]]]:
    """Every world, as facts that decide all conditions of communication, with the events of every device in it."""
    open_worlds: list[Facts] = [()]
    worlds = 0
    while open_worlds:
        world = open_worlds.pop()
        try:
            traces = [_record(context, rank, world) for rank in range(context.devices)]
        except UndecidedError as undecided:
            worlds += 1
            if worlds > _MOST_WORLDS:
                context.refuse(
                    Refusal(
                        "undecided-communication",
                        f"what devices send each other depends on scalars in more than {_MOST_WORLDS} ways, "
                        f"such as by `{undecided.text}`",
                        "communicate under fewer conditions, or in loops whose trip counts have a smaller range",
                    ),
                    None,
                )
                return
            for condition in (context.logic.negation(undecided.condition), undecided.condition):
                if isinstance(condition, Condition):
                    open_worlds.append((*world, condition))
            continue
        yield world, traces


def _record(context: Context, rank: int, world: Facts) -> list[Event]:
    recorder = Recorder(context, rank, world)
    try:
        recorder.execute()
    finally:
        recorder.release()
    return recorder.events


def _verify_world(context: Context, roles: Roles, world: Facts, traces: Sequence[Sequence[Event]]) -> Statistics:
    outcome = run_all(traces)
    _refuse_stuck(context, world, traces, outcome)
    if outcome.stuck:
        return Statistics()
    _refuse_left(context, outcome)
    views = views_of(traces)
    total = Statistics()
    proven: dict[Hashable, set[Hashable]] = {}
    by_rank = ByRank(context)
    computes = any(isinstance(op, Compute) and op.sets for op in context.source.ops)
    # What is known in a world of what a device has computed is known of that device alone.
    alone = bool(world and computes)
    twins: dict[Hashable, Twins] = {}
    for rank, view in enumerate(views):
        for sent in view.arrivals.get(0, ()):
            _refuse_not_started(context, rank, sent)
        peers = Peers(_arriving(view), _read(views, traces, rank))
        control = (roles.control(rank), rank if alone else None)
        if control in twins and twins[control].have(rank, peers):
            continue
        course, rows = (control, roles.course(rank, peers)), roles.rows(rank, peers)
        if course not in proven:
            proven[course] = {rows}
            witness = Witness(context, rank, world, peers, Turns(context.program, by_rank.moving))
            total += witness.verify()
            if not context.refusals:
                twins.setdefault(control, Twins(witness))
        elif rows not in proven[course]:
            proven[course].add(rows)
            total += Placed(context, rank, world, peers, by_rank).verify()
    return total


def _arriving(view: View) -> dict[int, list[Transfer]]:
    return {
        events: [sent.post.arrival for sent in entries if sent.post.arrival is not None]
        for events, entries in view.arrivals.items()
    }


def _read(views: Sequence[View], traces: Sequence[Sequence[Event]], rank: int) -> dict[int, list[Transfer]]:
    """By number of the device's events: its transfers whose arrival the peer has then waited for."""
    found: dict[int, list[Transfer]] = {}
    for number, event in enumerate(traces[rank]):
        for post in event.posts:
            events = views[post.device].received.get((rank, number)) if post.arrival is not None else None
            if events is not None and events < len(traces[rank]):
                assert post.arrival is not None
                found.setdefault(events + 1, []).append(post.arrival)
    return found


def _place(context: Context, event: Event, device: int) -> Place:
    text = context.atoms.text
    counters = tuple((name, value if type(value) is int else text(value)) for name, value in event.counters)
    return context.source.place(event.op, counters, device)


def _refuse_stuck(context: Context, world: Facts, traces: Sequence[Sequence[Event]], outcome: Outcome) -> None:
    when = f" when {context.guard_text(world)}" if world else ""
    for stuck in outcome.stuck:
        other = next((s for s in outcome.stuck if s.device != stuck.device), None)
        if stuck.event.kind == "barrier":
            _refuse_barrier(context, traces, stuck, outcome.stuck, when)
        else:
            _refuse_take(context, stuck, other, when)


def _refuse_barrier(
    context: Context, traces: Sequence[Sequence[Event]], stuck: Stuck, all_stuck: Sequence[Stuck], when: str
) -> None:
    place = _place(context, stuck.event, stuck.device)
    elsewhere = next((s for s in all_stuck if s.event.kind != "barrier"), None)
    if elsewhere is not None:
        other = _place(context, elsewhere.event, elsewhere.device)
        what = f"{place} waits for device {elsewhere.device}, which hangs at {other}{when}"
        repair = f"see to it that device {elsewhere.device} gets past line {other.line}"
    else:
        counts = [sum(event.kind == "barrier" for event in trace) for trace in traces]
        least = counts.index(min(counts))
        other = context.source.place(stuck.event.op, (), least)
        what = (
            f"{place} waits for device {least}, which executes {counts[least]} barriers where device {stuck.device} "
            f"executes {counts[stuck.device]}: it hangs{when}"
        )
        repair = f"let every device execute {max(counts)} barriers"
    context.refuse(Refusal("deadlock", what, repair, place, other), None)


def _refuse_take(context: Context, stuck: Stuck, other_stuck: Stuck | None, when: str) -> None:
    event = stuck.event
    place = _place(context, event, stuck.device)
    semaphore = context.source.semaphore_text(event.element)
    other = context.source.any_start(event.element[0])
    what = f"{place} waits for {event.amount} of {semaphore}, which gets to {stuck.held} and no further: it hangs{when}"
    if other_stuck is not None:
        other = _place(context, other_stuck.event, other_stuck.device)
        what += f"; device {other_stuck.device} hangs at {other}"
    elif other is not None:
        what += f"; it is added to by {other}"
    repair = f"let a device add {event.amount - stuck.held} to {semaphore} of device {stuck.device}, or remove the wait"
    context.refuse(Refusal("deadlock", what, repair, place, other), event.element[0])


def _refuse_left(context: Context, outcome: Outcome) -> None:
    kinds = {semaphore.name: semaphore.kind for semaphore in context.program.semaphores}
    for (device, element), count in sorted(outcome.left.items()):
        if kinds[element[0]] != "regular":
            continue
        signal = context.source.any_start(element[0])
        semaphore = context.source.semaphore_text(element)
        context.refuse(
            Refusal(
                "semaphore-left",
                f"{semaphore} of device {device} holds {count} when the program ends, signalled by {signal}",
                f"await {count} more on device {device}",
                signal,
            ),
            element[0],
        )


def _refuse_not_started(context: Context, rank: int, sent: Sent) -> None:
    place = _place(context, sent.event, sent.sender)
    context.refuse(
        Refusal(
            "peer-not-started",
            f"{place} may reach device {rank} before the kernel has begun there",
            f"put a barrier before line {place.line}",
            place,
        ),
        None,
    )

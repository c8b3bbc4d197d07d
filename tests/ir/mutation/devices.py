"""Other devices than the right ones."""

from __future__ import annotations

import random
from dataclasses import replace

from schedc.ir.expr import Compare, Const, Rank, add, mod
from schedc.ir.program import Barrier, Case, Program, RemoteStart, Signal, When
from tests.ir.mutation.edit import all_sites, exchanged, operations, with_part_of
from tests.ir.mutation.registry import kind


@kind
def wrong_peer(program: Program, rng: random.Random) -> Program | None:
    """A message or a credit goes to another device."""
    found = [(path, op) for path, op in operations(program, RemoteStart, Signal) if op.peer is not None]
    if not found or program.devices < 2:
        return None
    path, op = rng.choice(found)
    peer = mod(add(op.peer, rng.randrange(1, program.devices)), program.devices)
    return exchanged(program, path, replace(op, peer=peer))


@kind
def peer_that_is_not_there(program: Program, rng: random.Random) -> Program | None:
    """A message or a credit goes to a device behind the last one."""
    found = [(path, op) for path, op in operations(program, RemoteStart, Signal) if op.peer is not None]
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, replace(op, peer=add(op.peer, 1)))


@kind
def all_to_one(program: Program, rng: random.Random) -> Program | None:
    """All devices send to the same one."""
    found = [(path, op) for path, op in operations(program, RemoteStart, Signal) if op.peer is not None]
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, replace(op, peer=Const(rng.randrange(program.devices))))


@kind
def signal_oneself(program: Program, rng: random.Random) -> Program | None:
    """A credit stays on the device that gives it."""
    found = operations(program, Signal)
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, replace(op, peer=None))


@kind
def swap_ends(program: Program, rng: random.Random) -> Program | None:
    """The semaphores of the two ends of a message change places."""
    found = operations(program, RemoteStart)
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, replace(op, sent=op.arrived, arrived=op.sent))


@kind
def other_rank(program: Program, rng: random.Random) -> Program | None:
    """Something is done, or lies, where it would on another device."""
    found = all_sites(program, Rank)
    if not found:
        return None
    path, site, _ = rng.choice(found)
    new = rng.choice((Const(0), mod(add(Rank(), 1), program.devices)))
    return with_part_of(program, path, site, new)


@kind
def barrier_of_some(program: Program, rng: random.Random) -> Program | None:
    """One device does not come to a barrier."""
    found = operations(program, Barrier)
    if not found:
        return None
    path, op = rng.choice(found)
    absent = Compare("!=", Rank(), Const(rng.randrange(program.devices)))
    return exchanged(program, path, When((absent,), (op,)))


@kind
def double_barrier(program: Program, rng: random.Random) -> Program | None:
    """One device comes to a barrier twice."""
    found = operations(program, Barrier)
    if not found:
        return None
    path, op = rng.choice(found)
    again = Compare("==", Rank(), Const(rng.randrange(program.devices)))
    return exchanged(program, path, op, When((again,), (op,)))


@kind
def extra_barrier(program: Program, rng: random.Random) -> Program | None:
    """There is a barrier too many, or on one device only."""
    if program.devices < 2:
        return None
    places = [(path, op) for path, op in operations(program, object) if len(path) < 3 and not isinstance(op, Case)]
    path, op = rng.choice(places)
    barrier = Barrier() if rng.random() < 0.5 else When((Compare("==", Rank(), Const(0)),), (Barrier(),))
    return exchanged(program, path, op, barrier)

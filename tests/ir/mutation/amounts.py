"""Another number of rows than the right one."""

from __future__ import annotations

import random
from dataclasses import replace

from schedc.ir.program import Await, Program, RemoteStart, Signal, Start, Wait
from tests.ir.mutation.edit import block, exchanged, operations, with_block
from tests.ir.mutation.registry import kind


def _other(rows: int, rng: random.Random) -> int:
    return rng.choice([n for n in (rows // 2, rows - 1, rows + 1, rows + 8, rows * 2) if 0 < n != rows])


@kind
def wait_for_other_rows(program: Program, rng: random.Random) -> Program | None:
    """A wait takes more or fewer rows than arrive."""
    path, op = rng.choice(operations(program, Wait))
    return exchanged(program, path, replace(op, rows=_other(op.rows, rng)))


@kind
def copy_fewer_rows(program: Program, rng: random.Random) -> Program | None:
    """A transfer is too short; what it signals is what it copies."""
    path, op = rng.choice(operations(program, Start, RemoteStart))
    return _resized(program, path, op, rng.choice([op.source.rows // 2, op.source.rows - 1]))


@kind
def copy_more_rows(program: Program, rng: random.Random) -> Program | None:
    """A transfer is too long, and runs over its slot or buffer."""
    path, op = rng.choice(operations(program, Start, RemoteStart))
    return _resized(program, path, op, op.source.rows + 8)


@kind
def copy_and_wait_for_fewer_rows(program: Program, rng: random.Random) -> Program | None:
    """A transfer is too short, and so are all waits for its semaphore: what it leaves out was never written."""
    path, op = rng.choice(operations(program, Start))
    users = [x for _, x in operations(program, Start) if x.semaphore.name == op.semaphore.name]
    waits = [(at, x) for at, x in operations(program, Wait) if x.semaphore.name == op.semaphore.name]
    if len(users) > 1 or not waits:
        return None
    fewer = op.source.rows // 2
    program = _resized(program, path, op, fewer)
    for at, wait in waits:
        program = exchanged(program, at, replace(wait, rows=fewer))
    return program


def _resized(program: Program, path: tuple[int, ...], op: Start | RemoteStart, rows: int) -> Program | None:
    if rows <= 0:
        return None
    source, target = replace(op.source, rows=rows), replace(op.target, rows=rows)
    return exchanged(program, path, replace(op, source=source, target=target))


@kind
def split_wait(program: Program, rng: random.Random) -> Program | None:
    """A wait is split in two, and something else comes in between."""
    path, op = rng.choice([place for place in operations(program, Wait) if place[1].rows > 1])
    first = rng.choice([1, op.rows // 2, op.rows - 1])
    siblings = list(block(program, path[:-1]))
    siblings[path[-1]] = replace(op, rows=first)
    siblings.insert(rng.randrange(path[-1] + 1, len(siblings) + 1), replace(op, rows=op.rows - first))
    return with_block(program, path[:-1], tuple(siblings))


@kind
def other_amount(program: Program, rng: random.Random) -> Program | None:
    """A signal gives, or an await takes, more than it should."""
    found = operations(program, Signal, Await)
    if not found:
        return None
    path, op = rng.choice(found)
    return exchanged(program, path, replace(op, amount=op.amount + rng.choice((1, 2))))

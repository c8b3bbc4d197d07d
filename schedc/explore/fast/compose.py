"""An ordering of a model as a trace: what `schedc/schedule/assemble.py` makes a program of, in microseconds.

Left out are the guards of refills beyond one each, and the trips of loops over deferred refills: a few ns a tile.
"""

from __future__ import annotations

import numpy as np

from schedc.explore.fast.jit import compiled, inlined
from schedc.explore.fast.laps import laps, member_laps, sequences
from schedc.explore.fast.model import MOST_SLOTS
from schedc.explore.fast.trace import MARK, START, WAIT


@compiled
def compose(m, notes_whole, notes_real, order, issue, deferred, ring_of, slots, ahead, begin, whole, real):
    """Write the ordering into the columns `whole` and `real`; (entries, ns of core time after the last).

    `m`: model.Arrays. `order`: the units, segment by segment. By transfer, `issue`: the unit at whose start it is
    issued. By unit, `deferred`: the one at whose start its refills are, or -1. By stream, `ring_of`. By ring, `slots`,
    `ahead`, and `begin`: the unit at whose start it begins, -1 for before all, -2 for a ring of chosen members.
    """
    rings = len(slots)
    wait_ns, start_ns, guard_ns, latency_ns = m.ticks[0], m.ticks[1], m.ticks[2], m.ticks[3]
    offset, lap_tiles, first_user, last_user = laps(m, order, ring_of, rings)
    sequence, length = sequences(m, order, ring_of, rings, last_user, lap_tiles)
    before, each, first_reader, last_reader = member_laps(m, ring_of)
    part_of, part_vectors, part_first = m.stream, m.vectors, m.part_first
    slice_first, slice_rest, slice_of = m.slice_first, m.slice_rest, m.slice_of
    tiles, rows, need, members = m.tiles, m.rows, m.need_ns, m.members
    transfer_unit, transfer_slice = m.transfer_unit, m.transfer_slice
    base = np.zeros(rings, np.int64)
    n, pending, mark = 0, 0.0, 0
    for r in range(rings):
        if begin[r] == -1:
            n, pending = _fill(whole, real, n, pending, sequence, length, slots, ahead, m.semaphores, rows, need,
                               start_ns, latency_ns, r)  # fmt: skip
    for s in range(len(m.trips)):
        first, last, trips = m.unit_first[s], m.unit_first[s + 1], m.trips[s]
        for trip in range(trips):
            if m.whole_trips[s] > 1:
                pending += m.trip_ns[s]
            for place in range(first, last):
                u = order[place]
                for r in range(rings):
                    if begin[r] == u and trip == (0 if lap_tiles[s, r] > 0 else trips - 1):
                        n, pending = _fill(whole, real, n, pending, sequence, length, slots, ahead, m.semaphores, rows,
                                           need, start_ns, latency_ns, r)  # fmt: skip
                for t in range(len(issue)):
                    if issue[t] != u:
                        continue
                    v = transfer_unit[t]
                    if v < 0:
                        at = transfer_slice[t] + trip
                        n, pending = _copy(notes_whole, notes_real, slice_first[at], slice_first[at + 1], whole, real,
                                           n, pending, slice_rest[at])  # fmt: skip
                        continue
                    n, pending = _fill_with_members(
                        whole, real, n, pending, part_first[v], part_first[v + 1], part_of, part_vectors, ring_of,
                        tiles, before, each, last_reader, slots, ahead, begin, m.semaphores, rows, need,
                        guard_ns + start_ns, latency_ns, members[v, trip],
                    )  # fmt: skip
                for earlier in range(first, place):
                    e = order[earlier]
                    if deferred[e] == u:
                        x = max(part_vectors[part_first[e]], part_of[part_first[e]])
                        r = ring_of[x]
                        n, pending = _refill(
                            whole, real, n, pending, sequence, length, slots, ahead, m.semaphores, rows, need,
                            guard_ns + start_ns, latency_ns, r, base[r] + offset[x], tiles[x],
                        )  # fmt: skip
                chosen = members[u, trip] >= 0
                for member in range(abs(members[u, trip])):
                    if chosen:
                        pending += m.member_ns[u]
                    for part in range(part_first[u], part_first[u + 1]):
                        x, v = part_of[part], part_vectors[part]
                        count = tiles[x] if x >= 0 else 1
                        x = max(x, v)
                        r = ring_of[x] if x >= 0 else 0
                        arrives, leaves, number = x >= 0, x >= 0, 0
                        if x >= 0 and chosen:
                            arrives, leaves = first_reader[part], last_reader[part]
                            number = member * each[part] + before[part]
                        elif x >= 0:
                            arrives, leaves = first_user[x] == u, last_user[x] == u and deferred[u] < 0
                            number = base[r] + offset[x]
                        at = slice_of[part, trip] + member * count
                        for tile in range(count):
                            if count > 1:
                                pending += m.tile_ns[part]
                            if arrives:
                                slot = _slot(m.semaphores, slots, r, number + tile)
                                if ahead[r] == 0:
                                    _start(whole, real, n, pending + start_ns, slot, rows[x], need[x], latency_ns)
                                    n, pending = n + 1, 0.0
                                whole[n, 0], whole[n, 1], whole[n, 2] = WAIT, slot, rows[x]
                                real[n, 0] = pending + wait_ns
                                n, pending = n + 1, 0.0
                            n, pending = _copy(notes_whole, notes_real, slice_first[at + tile],
                                               slice_first[at + tile + 1], whole, real, n, pending,
                                               slice_rest[at + tile])  # fmt: skip
                            if not leaves or ahead[r] == 0:
                                continue
                            later, y = number + tile + ahead[r], -1
                            if chosen:
                                y, _ = _of_member(
                                    part_first[u], part_first[u + 1], part_of, part_vectors, ring_of, tiles, before,
                                    each, last_reader, r, later, members[u, trip],
                                )  # fmt: skip
                            elif later < length[r]:
                                y = sequence[r, later]
                            pending += guard_ns + start_ns
                            if y >= 0:
                                slot = _slot(m.semaphores, slots, r, later)
                                _start(whole, real, n, pending, slot, rows[y], need[y], latency_ns)
                                n, pending = n + 1, 0.0
            for r in range(rings):
                base[r] += lap_tiles[s, r]
            whole[n, 0], whole[n, 3], real[n, 0] = MARK, mark, pending
            n, pending, mark = n + 1, 0.0, mark + 1
    return n, pending


@inlined
def _slot(semaphores, slots, r, number):
    """The semaphore of what passes through ring `r` as number `number`."""
    return semaphores + r * MOST_SLOTS + number % slots[r]


@inlined
def _fill(whole, real, n, pending, sequence, length, slots, ahead, semaphores, rows, need, start_ns, latency_ns, r):
    """Start the first tiles of ring `r`."""
    for number in range(min(ahead[r], length[r])):
        x, slot = sequence[r, number], _slot(semaphores, slots, r, number)
        _start(whole, real, n, pending + start_ns, slot, rows[x], need[x], latency_ns)
        n, pending = n + 1, 0.0
    return n, pending


@inlined
def _fill_with_members(
    whole, real, n, pending, first, last, part_of, part_vectors, ring_of, tiles, before, each, last_reader,
    slots, ahead, begin, semaphores, rows, need, guarded_ns, latency_ns, members,
):  # fmt: skip
    """Start the first tiles of a selection's members, those of the parts `first` to `last`."""
    for r in range(len(slots)):
        if begin[r] != -2:
            continue
        for number in range(ahead[r]):
            x, total = _of_member(
                first, last, part_of, part_vectors, ring_of, tiles, before, each, last_reader, r, number, members
            )
            if total == 0:
                break
            pending += guarded_ns
            if x >= 0:
                slot = _slot(semaphores, slots, r, number)
                _start(whole, real, n, pending, slot, rows[x], need[x], latency_ns)
                n, pending = n + 1, 0.0
    return n, pending


@inlined
def _refill(
    whole, real, n, pending, sequence, length, slots, ahead, semaphores, rows, need, guarded_ns, latency_ns,
    r, number, tiles,
):  # fmt: skip
    """Start what comes into ring `r` in place of `tiles` tiles from `number` on, if it is refilled."""
    for tile in range(tiles if ahead[r] > 0 else 0):
        later = number + tile + ahead[r]
        pending += guarded_ns
        if later < length[r]:
            x, slot = sequence[r, later], _slot(semaphores, slots, r, later)
            _start(whole, real, n, pending, slot, rows[x], need[x], latency_ns)
            n, pending = n + 1, 0.0
    return n, pending


@compiled
def _copy(notes_whole, notes_real, first, last, whole, real, n, pending, rest):
    """The notes from `first` to `last`, behind core time `pending`."""
    if first == last:
        return n, pending + rest
    for k in range(first, last):
        for column in range(5):
            whole[n + k - first, column] = notes_whole[k, column]
        for column in range(3):
            real[n + k - first, column] = notes_real[k, column]
    real[n, 0] += pending
    return n + last - first, rest


@compiled
def _start(whole, real, n, after, semaphore, rows, need, latency):
    whole[n, 0], whole[n, 1], whole[n, 2] = START, semaphore, rows
    real[n, 0], real[n, 1], real[n, 2] = after, need, latency


@compiled
def _of_member(first, last, part_of, part_vectors, ring_of, tiles, before, each, last_reader, r, number, members):
    """Of the tiles of a selection's members through ring `r`, the stream of one, -1 past the last; tiles a member."""
    total = 0
    for part in range(first, last):
        x = max(part_of[part], part_vectors[part])
        if x < 0 or ring_of[x] != r or not last_reader[part]:
            continue
        total = each[part]
        rest = number % total
        if number < total * members and before[part] <= rest < before[part] + tiles[x]:
            return x, total
    return -1, total

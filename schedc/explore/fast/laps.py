"""Which tiles pass through a ring in what order: `schedc/schedule/sequence.py` over arrays."""

from __future__ import annotations

import numpy as np

from schedc.explore.fast.jit import compiled


@compiled
def laps(m, order, ring_of, rings):
    """By stream, where its tiles pass within a trip of its ring, and its first and last unit; by segment and ring, the
    tiles of a trip. Streams pass in the order in which their use ends; those of chosen members are left out."""
    streams = len(m.tiles)
    first_user, last_user = np.full(streams, -1), np.full(streams, -1)
    offset, lap_tiles = np.zeros(streams, np.int64), np.zeros((len(m.trips), rings), np.int64)
    for u in order:
        x = max(m.vectors[m.part_first[u]], m.stream[m.part_first[u]])
        if m.members[u, 0] < 0 and x >= 0:
            last_user[x] = u
            if first_user[x] < 0:
                first_user[x] = u
    for s in range(len(m.trips)):
        for u in order[m.unit_first[s] : m.unit_first[s + 1]]:
            x = max(m.vectors[m.part_first[u]], m.stream[m.part_first[u]])
            if m.members[u, 0] < 0 and x >= 0 and last_user[x] == u:
                offset[x] = lap_tiles[s, ring_of[x]]
                lap_tiles[s, ring_of[x]] += m.tiles[x]
    return offset, lap_tiles, first_user, last_user


@compiled
def sequences(m, order, ring_of, rings, last_user, lap_tiles):
    """By ring, the stream of every tile that passes through it in the whole (cut) step, and how many there are."""
    longest = 1
    for r in range(rings):
        longest = max(longest, (lap_tiles[:, r] * m.trips).sum())
    found, length = np.zeros((rings, longest), np.int64), np.zeros(rings, np.int64)
    for s in range(len(m.trips)):
        for u in order[m.unit_first[s] : m.unit_first[s + 1]]:
            x = max(m.vectors[m.part_first[u]], m.stream[m.part_first[u]])
            if m.members[u, 0] < 0 and x >= 0 and last_user[x] == u:
                r = ring_of[x]
                found[r, length[r] : length[r] + m.tiles[x]] = x
                length[r] += m.tiles[x]
        for r in range(rings):
            tiles = lap_tiles[s, r]
            for _ in range(tiles * (m.trips[s] - 1)):
                found[r, length[r]] = found[r, length[r] - tiles]
                length[r] += 1
    return found, length


@compiled
def member_laps(m, ring_of):
    """By part of a selection: the tiles of a member that pass before its stream's, those of the whole member through
    the ring, and whether it is the first and the last part that uses the stream."""
    parts = len(m.stream)
    before, each = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    first, last = np.ones(parts, np.bool_), np.ones(parts, np.bool_)
    for u in range(len(m.members)):
        if m.members[u, 0] < 0:
            continue
        own = range(m.part_first[u], m.part_first[u + 1])
        for part in own:
            x = max(m.vectors[part], m.stream[part])
            for other in own:
                same = max(m.vectors[other], m.stream[other]) == x
                if same and other < part:
                    first[part] = False
                if same and other > part:
                    last[part] = False
        for part in own:
            x = max(m.vectors[part], m.stream[part])
            if x < 0:
                continue
            end = part
            for other in own:
                if max(m.vectors[other], m.stream[other]) == x:
                    end = other
            for other in own:
                y = max(m.vectors[other], m.stream[other])
                if y >= 0 and last[other] and ring_of[y] == ring_of[x]:
                    each[part] += m.tiles[y]
                    if other < end:
                        before[part] += m.tiles[y]
    return before, each, first, last

"""Random changes of an ordering, compiled: a phase elsewhere, a transfer issued elsewhere, refills left to a later
phase, slots more or less. Each is made in all layers at once, or in one. Whether the result is legal is asked then."""

from __future__ import annotations

import numpy as np

from schedc.explore.fast.jit import compiled

NEAR = 12
"""Places that a phase moves at most at a time."""


@compiled
def change(m, f, order, issue, deferred, ring_of, slots, ahead, begin, together):
    """One random change, of the arrays given; False if it comes to nothing. `f`: Freedom."""
    what = np.random.random()
    if what < 0.45:
        return _move(m, f, order, together)
    if what < 0.60:
        return _issue(m, f, order, issue, together)
    if what < 0.80:
        return _defer(m, f, order, deferred, ring_of, together)
    if what < 0.95:
        return _resize(slots, ahead)
    return _begin(order, begin)


@compiled
def _place(order, u):
    for place in range(len(order)):
        if order[place] == u:
            return place
    return -1


@compiled
def _near(m, f, order, u, near):
    """A random other unit of the same layer, at most `near` places away."""
    place = _place(order, u)
    first, last = m.unit_first[f.segment[u]], m.unit_first[f.segment[u] + 1]
    low, high = max(first, place - near), min(last, place + near + 1)
    v = order[np.random.randint(low, high)]
    return v if v != u and f.layer[v] == f.layer[u] else -1


@compiled
def _move(m, f, order, together):
    """Put a unit right before or right behind another."""
    u = np.random.randint(0, len(order))
    v = _near(m, f, order, u, NEAR)
    if v < 0:
        return False
    behind = np.random.random() < 0.5
    for layer in range(f.unit_at.shape[1]):
        a, b = f.unit_at[f.group[u], layer], f.unit_at[f.group[v], layer]
        if a < 0 or b < 0 or not (together or a == u) or f.segment[a] != f.segment[b]:
            continue
        here = _place(order, a)
        there = _place(order, b)
        if there > here and not behind:
            there -= 1
        elif there < here and behind:
            there += 1
        while here < there:
            order[here] = order[here + 1]
            here += 1
        while here > there:
            order[here] = order[here - 1]
            here -= 1
        order[here] = a
    for k in range(len(f.kept_behind)):
        a = f.kept_behind[k, 1]
        here, there = _place(order, a), _place(order, f.kept_behind[k, 0])
        while here < there:
            order[here] = order[here + 1]
            here += 1
        while here > there + 1:
            order[here] = order[here - 1]
            here -= 1
        order[here] = a
    return True


@compiled
def _issue(m, f, order, issue, together):
    if len(issue) == 0:
        return False
    t = np.random.randint(0, len(issue))
    v = _near(m, f, order, issue[t], NEAR)
    if v < 0:
        return False
    for other in range(len(issue)):
        if f.transfer_group[other] != f.transfer_group[t] or not (together or other == t):
            continue
        w = f.unit_at[f.group[v], f.transfer_layer[other]]
        if w >= 0:
            issue[other] = w
    return True


@compiled
def _defer(m, f, order, deferred, ring_of, together):
    """Leave the refills of a ring between two units to the later one, or no longer."""
    u = np.random.randint(0, len(order))
    if f.streams[u] < 0:
        return False
    r, until = ring_of[f.streams[u]], -1
    if np.random.random() < 0.7:
        until = _near(m, f, order, u, NEAR)
        if until < 0:
            return False
    for layer in range(f.unit_at.shape[1]):
        a = f.unit_at[f.group[u], layer]
        if a < 0 or not (together or a == u):
            continue
        if until < 0:
            deferred[a] = -1
            continue
        b = f.unit_at[f.group[until], layer]
        if b < 0 or f.segment[a] != f.segment[b]:
            continue
        for place in range(_place(order, a), _place(order, b)):
            w = order[place]
            if f.streams[w] >= 0 and ring_of[f.streams[w]] == r:
                deferred[w] = b
    return True


@compiled
def _resize(slots, ahead):
    r = np.random.randint(0, len(slots))
    by = np.random.randint(-2, 3)
    if np.random.random() < 0.5:
        ahead[r] += by
    else:
        full = ahead[r] == slots[r]
        slots[r] += by
        if full:
            ahead[r] = slots[r]
    return by != 0


@compiled
def _begin(order, begin):
    r = np.random.randint(0, len(begin))
    if begin[r] == -2:
        return False
    begin[r] = -1 if np.random.random() < 0.5 else order[np.random.randint(0, len(order))]
    return True


@compiled
def legal(m, f, order, issue, deferred, ring_of, slots, ahead, place, rows, semaphores):
    """Whether an ordering can be built: `schedc/schedule/legal.py` over arrays. `place` is written: by unit, its place.

    `rows`: of VMEM for all rings, `semaphores`: for all slots.
    """
    total = count = 0
    for r in range(len(slots)):
        if not (1 <= slots[r] <= 64 and 0 <= ahead[r] <= slots[r]):
            return False
        total += slots[r] * f.ring_rows[r]
        count += slots[r]
    if total > rows or count > semaphores:
        return False
    for at in range(len(order)):
        place[order[at]] = at
    for k in range(len(f.edges)):
        if place[f.edges[k, 0]] >= place[f.edges[k, 1]]:
            return False
    for k in range(len(f.kept_behind)):
        if place[f.kept_behind[k, 1]] != place[f.kept_behind[k, 0]] + 1:
            return False
    for k in range(len(f.issued_after)):
        if place[f.issued_after[k, 0]] >= place[issue[f.issued_after[k, 1]]]:
            return False
    for k in range(len(f.issued_by)):
        if place[issue[f.issued_by[k, 0]]] > place[f.issued_by[k, 1]]:
            return False
    for u in range(len(order)):
        if deferred[u] < 0:
            continue
        end, x = place[deferred[u]], f.streams[u]
        if x < 0 or end <= place[u] or f.segment[u] != f.segment[deferred[u]]:
            return False
        for at in range(place[u] + 1, m.unit_first[f.segment[u] + 1]):
            w = order[at]
            if f.streams[w] == x:
                return False
            if at < end and f.streams[w] >= 0 and ring_of[f.streams[w]] == ring_of[x]:
                until = place[deferred[w]] if deferred[w] >= 0 else at
                if until < end:
                    return False
    return True

"""The clock of a device that does what a trace says: `schedc/cost/simulate.py`, `hbm.py` and `links.py`, compiled."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np

from schedc.explore.fast.jit import compiled, inlined
from schedc.explore.fast.trace import BURST, MARK, SEND, START, WAIT

COMING = 1024
"""Transfers that may be on their way or queued at a time; a power of two."""

TIME, SERVED = 0, 1
"""In `clock`, until when the transfers of the HBM are served, and how many ns of it each has had that shares it."""

COMING_HEAD, COMING_TAIL, QUEUE_HEAD, QUEUE_TAIL, SHARING = 0, 1, 2, 3, 4
"""In `ends`, those of what is in its latency and of what is queued for the HBM, and how many share it."""


@compiled
def execute(
    whole, real, length, rest,
    burst_first, burst_route, burst_until, burst_total, burst_latency,
    semaphores, fed_by_hbm, routes, depth, in_flight, marks,
):  # fmt: skip
    """The time in ns at the end of the first `length` entries and `rest` ns of core time.

    nan if a wait never ends, -inf if there is no room for what is under way.

    `whole` and `real` are the fields of `trace.Note` (see `columns.Columns`); burst b has the routes `burst_first[b]`
    to `burst_first[b + 1]`. `depth`, a power of two: messages that may be under way to one semaphore. `marks` gets
    times.
    """
    kind, semaphore, amount, other, route = whole[:, 0], whole[:, 1], whole[:, 2], whole[:, 3], whole[:, 4]
    after, need, latency = real[:, 0], real[:, 1], real[:, 2]
    counts, free = np.zeros(semaphores, np.int64), np.zeros(routes, np.float64)
    message_time, message_amount = np.empty((semaphores, depth)), np.empty((semaphores, depth), np.int64)
    message_head, message_tail = np.zeros(semaphores, np.int64), np.zeros(semaphores, np.int64)
    coming_time, coming_entry, queue = np.empty(COMING), np.empty(COMING, np.int64), np.empty(COMING, np.int64)
    share_end, share_entry = np.empty(in_flight + 1), np.empty(in_flight + 1, np.int64)
    clock, ends, now = np.zeros(2), np.zeros(5, np.int64), 0.0

    for at in range(length):
        now += after[at]
        what = kind[at]
        if what == START:
            if not _submit(coming_time, coming_entry, ends, now + latency[at], at):
                return -inf
        elif what == WAIT:
            if fed_by_hbm[semaphore[at]]:
                now = _await_hbm(
                    coming_time, coming_entry, queue, share_end, share_entry, clock, ends,
                    message_time, message_amount, message_head, message_tail, depth,
                    counts, semaphore, amount, need, at, now,
                )  # fmt: skip
            else:
                now = _await_messages(
                    message_time, message_amount, message_head, message_tail, depth, counts, semaphore[at], amount[at],
                    now,
                )  # fmt: skip
            if isnan(now):
                return nan
        elif what in (BURST, SEND):
            if what == BURST:
                first, end = burst_first[route[at]], burst_first[route[at] + 1]
                left, there = _burst(free, burst_route, burst_until, burst_total, burst_latency, first, end, now)
                now += need[at]
            else:
                left = max(now, free[route[at]]) + need[at]
                there = left + latency[at]
                free[route[at]] = left
            s, o = semaphore[at], other[at]
            _deliver(message_time, message_amount, message_head, message_tail, depth, s, there, amount[at])
            if o >= 0:
                _deliver(message_time, message_amount, message_head, message_tail, depth, o, left, amount[at])
            if message_tail[s] - message_head[s] > depth or (o >= 0 and message_tail[o] - message_head[o] > depth):
                return -inf
        elif what == MARK:
            marks[other[at]] = now
    return now + rest


@inlined
def _submit(coming_time, coming_entry, ends, time, entry):
    """The transfer of `entry` is in its latency until `time`. Whether there is room."""
    head, place = ends[COMING_HEAD], ends[COMING_TAIL]
    room = place - head < COMING and ends[QUEUE_TAIL] - ends[QUEUE_HEAD] < COMING
    if room:
        while place > head and coming_time[(place - 1) % COMING] > time:
            coming_time[place % COMING] = coming_time[(place - 1) % COMING]
            coming_entry[place % COMING] = coming_entry[(place - 1) % COMING]
            place -= 1
        coming_time[place % COMING], coming_entry[place % COMING] = time, entry
        ends[COMING_TAIL] += 1
    return room


@inlined
def _await_messages(times, amounts, heads, tails, depth, counts, semaphore, wanted, now):
    """When a wait ends that only messages end; nan if never."""
    while counts[semaphore] < wanted and not isnan(now):
        head = heads[semaphore]
        if head == tails[semaphore]:
            now = nan
        else:
            now = max(now, times[semaphore, head % depth])
            counts[semaphore] += amounts[semaphore, head % depth]
            heads[semaphore] = head + 1
    counts[semaphore] -= wanted
    return now


@inlined
def _await_hbm(
    coming_time, coming_entry, queue, share_end, share_entry, clock, ends,
    message_time, message_amount, message_head, message_tail, depth,
    counts, semaphore, amount, need, at, now,
):  # fmt: skip
    """When the wait of entry `at` ends, which transfers of the HBM end, and messages; nan if never."""
    own, wanted = semaphore[at], amount[at]
    time, served = clock[TIME], clock[SERVED]
    coming_head, coming_tail = ends[COMING_HEAD], ends[COMING_TAIL]
    queue_head, queue_tail, sharing = ends[QUEUE_HEAD], ends[QUEUE_TAIL], ends[SHARING]
    while True:
        first_end = time + max(0.0, share_end[0] - served) * sharing if sharing else inf
        event = min(first_end, coming_time[coming_head % COMING] if coming_head < coming_tail else inf)
        head = message_head[own]
        message = message_time[own, head % depth] if head < message_tail[own] else inf
        if message <= event and message < inf and (message <= now or counts[own] < wanted):
            now = max(now, message)
            counts[own] += message_amount[own, head % depth]
            message_head[own] = head + 1
            continue
        if event > now and counts[own] >= wanted:
            break
        if event == inf:
            now = nan
            break
        if sharing:
            served += (event - time) / sharing
        time = event
        if first_end == event:
            served, ended = share_end[0], share_entry[0]
            counts[semaphore[ended]] += amount[ended]
            sharing -= 1
            for i in range(sharing):
                share_end[i], share_entry[i] = share_end[i + 1], share_entry[i + 1]
            if semaphore[ended] == own and counts[own] >= wanted and event > now:
                now = event
            entry = -1
            if queue_head < queue_tail:
                entry = queue[queue_head % COMING]
                queue_head += 1
        else:
            entry = coming_entry[coming_head % COMING]
            coming_head += 1
            if sharing == len(share_end) - 1:
                queue[queue_tail % COMING] = entry
                queue_tail += 1
                entry = -1
        if entry >= 0:
            _share(share_end, share_entry, sharing, served + need[entry], entry)
            sharing += 1
    counts[own] -= wanted
    clock[TIME], clock[SERVED] = time, served
    ends[COMING_HEAD], ends[QUEUE_HEAD], ends[QUEUE_TAIL], ends[SHARING] = coming_head, queue_head, queue_tail, sharing
    return now


@inlined
def _share(share_end, share_entry, sharing, end, entry):
    """One more than `sharing` transfers share the HBM, in the order of their ends."""
    place = sharing
    while place > 0 and share_end[place - 1] > end:
        share_end[place], share_entry[place] = share_end[place - 1], share_entry[place - 1]
        place -= 1
    share_end[place], share_entry[place] = end, entry


@inlined
def _burst(free, burst_route, burst_until, burst_total, burst_latency, first, end, now):
    """Messages over several routes: when the last has left, and when the last is there."""
    left = there = 0.0
    for part in range(first, end):
        route = burst_route[part]
        free[route] = max(now + burst_until[part], free[route] + burst_total[part])
        left = max(left, free[route])
        there = max(there, free[route] + burst_latency[part])
    return left, there


@compiled
def _deliver(times, amounts, heads, tails, depth, semaphore, time, amount):
    """Sorted by time."""
    place = tails[semaphore]
    tails[semaphore] = place + 1
    while place > heads[semaphore] and times[semaphore, (place - 1) % depth] > time:
        times[semaphore, place % depth] = times[semaphore, (place - 1) % depth]
        amounts[semaphore, place % depth] = amounts[semaphore, (place - 1) % depth]
        place -= 1
    times[semaphore, place % depth], amounts[semaphore, place % depth] = time, amount

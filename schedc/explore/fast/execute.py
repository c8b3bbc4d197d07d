"""The clock of a device that does what a trace says: `schedc/cost/simulate.py`, `hbm.py` and `links.py`, compiled."""

from __future__ import annotations

from math import inf, nan

import numpy as np

from schedc.explore.fast.jit import compiled
from schedc.explore.fast.trace import BURST, MARK, SEND, START, WAIT

COMING = 1024
"""Transfers that may be on their way or queued at a time; a power of two."""


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
    now = hbm = served = 0.0
    counts = np.zeros(semaphores, np.int64)
    free = np.zeros(routes, np.float64)
    message_time, message_amount = np.empty((semaphores, depth)), np.empty((semaphores, depth), np.int64)
    message_head, message_tail = np.zeros(semaphores, np.int64), np.zeros(semaphores, np.int64)
    coming_time, coming_entry = np.empty(COMING), np.empty(COMING, np.int64)
    queue = np.empty(COMING, np.int64)
    share_end, share_entry = np.empty(in_flight + 1), np.empty(in_flight + 1, np.int64)
    coming_head = coming_tail = queue_head = queue_tail = sharing = 0

    for at in range(length):
        now += after[at]
        what = kind[at]
        if what == START:
            begins = now + latency[at]
            place = coming_tail
            coming_tail += 1
            if coming_tail - coming_head > COMING or queue_tail - queue_head >= COMING:
                return -inf
            while place > coming_head and coming_time[(place - 1) % COMING] > begins:
                coming_time[place % COMING] = coming_time[(place - 1) % COMING]
                coming_entry[place % COMING] = coming_entry[(place - 1) % COMING]
                place -= 1
            coming_time[place % COMING], coming_entry[place % COMING] = begins, at
        elif what == WAIT:
            s, wanted = semaphore[at], amount[at]
            if not fed_by_hbm[s]:
                while counts[s] < wanted:
                    head = message_head[s]
                    if head == message_tail[s]:
                        return nan
                    now = max(now, message_time[s, head % depth])
                    counts[s] += message_amount[s, head % depth]
                    message_head[s] = head + 1
                counts[s] -= wanted
                continue
            while True:
                ends = inf
                if sharing:
                    ends = hbm + max(0.0, share_end[0] - served) * sharing
                begins = coming_time[coming_head % COMING] if coming_head < coming_tail else inf
                time = min(ends, begins)
                head = message_head[s]
                message = message_time[s, head % depth] if head < message_tail[s] else inf
                if message <= time and message < inf and (message <= now or counts[s] < wanted):
                    now = max(now, message)
                    counts[s] += message_amount[s, head % depth]
                    message_head[s] = head + 1
                    continue
                if time > now and counts[s] >= wanted:
                    break
                if time == inf:
                    return nan
                if sharing:
                    served += (time - hbm) / sharing
                hbm = time
                if ends == time:
                    served = share_end[0]
                    ended = share_entry[0]
                    counts[semaphore[ended]] += amount[ended]
                    sharing -= 1
                    for i in range(sharing):
                        share_end[i], share_entry[i] = share_end[i + 1], share_entry[i + 1]
                    if semaphore[ended] == s and counts[s] >= wanted and time > now:
                        now = time
                    entry = -1
                    if queue_head < queue_tail:
                        entry = queue[queue_head % COMING]
                        queue_head += 1
                else:
                    entry = coming_entry[coming_head % COMING]
                    coming_head += 1
                    if sharing == in_flight:
                        queue[queue_tail % COMING] = entry
                        queue_tail += 1
                        entry = -1
                if entry >= 0:
                    end, place = served + need[entry], sharing
                    sharing += 1
                    while place > 0 and share_end[place - 1] > end:
                        share_end[place], share_entry[place] = share_end[place - 1], share_entry[place - 1]
                        place -= 1
                    share_end[place], share_entry[place] = end, entry
            counts[s] -= wanted
        elif what == BURST:
            sent = there = 0.0
            for part in range(burst_first[route[at]], burst_first[route[at] + 1]):
                r = burst_route[part]
                left = max(now + burst_until[part], free[r] + burst_total[part])
                free[r] = left
                sent = max(sent, left)
                there = max(there, left + burst_latency[part])
            _deliver(message_time, message_amount, message_head, message_tail, depth, semaphore[at], there, amount[at])
            if other[at] >= 0:
                _deliver(message_time, message_amount, message_head, message_tail, depth, other[at], sent, amount[at])
            now += need[at]
        elif what == SEND:
            r = route[at]
            left = max(now, free[r]) + need[at]
            free[r] = left
            there = left + latency[at]
            _deliver(message_time, message_amount, message_head, message_tail, depth, semaphore[at], there, amount[at])
            if other[at] >= 0:
                _deliver(message_time, message_amount, message_head, message_tail, depth, other[at], left, amount[at])
        elif what == MARK:
            marks[other[at]] = now
        if what in (BURST, SEND):
            s, o = semaphore[at], other[at]
            if message_tail[s] - message_head[s] > depth or (o >= 0 and message_tail[o] - message_head[o] > depth):
                return -inf
    return now + rest


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

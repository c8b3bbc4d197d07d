"""Simulated annealing over the orderings of a model, compiled.

Kirkpatrick, Gelatt, Vecchi: Optimization by Simulated Annealing, Science 220 (1983). A change that makes the step
longer by d is kept with probability exp(-d / T); T falls geometrically.
"""

from __future__ import annotations

from math import inf

import numpy as np

from schedc.explore.fast.evaluate import evaluate
from schedc.explore.fast.jit import compiled
from schedc.explore.fast.moves import change, legal


@compiled
def anneal(
    m, notes_whole, notes_real, bursts, fed, sizes, f, order, issue, deferred, ring_of, slots, ahead, begin,
    whole, real, marks, seed, steps, hot, cold, rows, semaphores,
):  # fmt: skip
    """The time of the best ordering that `steps` changes came by, in ns, and how many orderings were simulated.

    `order` to `begin` are the ordering to start from, which must be legal, and become the best one; the temperature
    falls from `hot` to `cold`, which are shares of the time at the start.
    """
    np.random.seed(seed)
    place = np.zeros(len(order), np.int64)
    kept = (order.copy(), issue.copy(), deferred.copy(), slots.copy(), ahead.copy(), begin.copy())
    now = best = evaluate(
        m, notes_whole, notes_real, bursts, fed, sizes, order, issue, deferred, ring_of, slots, ahead, begin,
        whole, real, marks,
    )  # fmt: skip
    simulated, start = 1, now
    tried = (order.copy(), issue.copy(), deferred.copy(), slots.copy(), ahead.copy(), begin.copy())
    for step in range(steps):
        for k in range(6):
            tried[k][:] = kept[k]
        changes = 1 + (np.random.random() < 0.2)
        changed = False
        for _ in range(changes):
            together = np.random.random() < 0.7
            changed |= change(m, f, tried[0], tried[1], tried[2], ring_of, tried[3], tried[4], tried[5], together)
        if not changed or not legal(
            m, f, tried[0], tried[1], tried[2], ring_of, tried[3], tried[4], place, rows, semaphores
        ):
            continue
        time = evaluate(
            m, notes_whole, notes_real, bursts, fed, sizes, tried[0], tried[1], tried[2], ring_of, tried[3], tried[4],
            tried[5], whole, real, marks,
        )  # fmt: skip
        simulated += 1
        if time == inf:
            continue
        temperature = start * hot * (cold / hot) ** (step / steps)
        if time <= now or np.random.random() < np.exp((now - time) / temperature):
            now = time
            for k in range(6):
                kept[k][:] = tried[k]
        if time < best:
            best = time
            order[:], issue[:], deferred[:] = tried[0], tried[1], tried[2]
            slots[:], ahead[:], begin[:] = tried[3], tried[4], tried[5]
    return best, simulated

"""A policy of your own: thirty lines decide what is transferred when; allocation, proof and prediction come for free.

    schedc compile smollm2-135m --policy examples/my_policy.py:late_cache --set depth=4 --no-check

A policy gets a `Problem` (phases in order, weights to be streamed, other transfers with the phases they may be issued
at) and gives a `Plan`. Its keyword arguments are the settings of `--set`. A plan that cannot be built, does not fit
VMEM or is not proven safe is refused with the reason.
"""

from dataclasses import replace

from schedc.schedule.plan import Plan, Problem
from schedc.schedule.policies.ring import ring


def late_cache(problem: Problem, *, depth: int = 6, kv_tokens: int = 64) -> Plan:
    """The ring of weights, with small cache tiles that are fetched as late as they may be.

    Small tiles leave VMEM to the weights; a late fetch leaves HBM to the projections that come before attention.
    Compare its predicted step with that of `ring`: on most models the wait for the first tile costs more than it wins.
    """
    plan = ring(problem, depth=depth)
    fitting = [tokens for tokens in problem.kv_tokens if tokens <= kv_tokens]
    return replace(
        plan,
        kv_tokens=max(fitting, default=min(problem.kv_tokens)),
        issue={prefetch.name: prefetch.latest for prefetch in problem.prefetches},
    )

"""While one tile is used the next one arrives: two slots, the textbook overlap of transfer and computation."""

from schedc.schedule.plan import Plan, Problem
from schedc.schedule.policies.ring import ring


def double_buffer(problem: Problem, *, slot_mib: float = 4.0) -> Plan:
    return ring(problem, depth=2, slot_mib=slot_mib, expert_slots=2, expert_mib=slot_mib)

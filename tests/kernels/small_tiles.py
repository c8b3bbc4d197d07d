"""The built-in policies with the smallest tiles: the same loops with less to trace."""

from dataclasses import replace

from schedc.schedule.plan import Plan, Problem
from schedc.schedule.policies import double_buffer as double_buffers
from schedc.schedule.policies import just_in_time as in_time
from schedc.schedule.policies import ring as rings

SLOT_MIB = 0.02


def ring(problem: Problem, *, depth: int = 3) -> Plan:
    return small(problem, rings.ring(problem, depth=depth, slot_mib=SLOT_MIB))


def double_buffer(problem: Problem) -> Plan:
    return small(problem, double_buffers.double_buffer(problem, slot_mib=SLOT_MIB))


def just_in_time(problem: Problem) -> Plan:
    return small(problem, in_time.just_in_time(problem, slot_mib=SLOT_MIB))


def small(problem: Problem, plan: Plan) -> Plan:
    return replace(plan, kv_tokens=problem.kv_tokens[-1])

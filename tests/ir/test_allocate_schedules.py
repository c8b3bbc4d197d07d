"""On every schedule of the repository each pool takes what is live at its fullest time, or what is proven the least."""

from __future__ import annotations

import pytest

from schedc.ir.allocate import allocate, pool_problems
from schedc.ir.allocate.share import TOLERANCE, first_packing, improved
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.one_device import models_for_every_policy

TARGET = parse_target("tpu7x")


@pytest.mark.parametrize("policy", ["ring", "double_buffer", "just_in_time"])
@pytest.mark.parametrize("model", models_for_every_policy())
def test_a_pool_takes_no_more_than_one_per_cent_above_the_least(model, policy):
    for rows in (1, 8, 16):
        program = schedule(load_spec(model), StepShape(rows, 4096), TARGET, policy).program
        taken = {pool.name: pool.rows for pool in allocate(program, capacity_rows(TARGET)).pools}
        for pool, problem in pool_problems(program).items():
            least = improved(first_packing(problem), 10.0).bound
            assert taken[pool] <= least * (1 + TOLERANCE), (rows, pool)

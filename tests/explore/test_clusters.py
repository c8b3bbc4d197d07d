"""Candidates evaluated on a cluster give what they give in this process."""

from __future__ import annotations

import pytest
from settings import setting

from schedc.errors import UserError
from schedc.explore.executors import executor
from schedc.explore.search.improve import Task, improve
from schedc.explore.setting import prepared
from schedc.schedule.registry import run_policy

SETTING = setting("smollm2-135m")


def tasks() -> list[Task]:
    plan = run_policy("ring", prepared(SETTING).problem, {})
    return [Task(SETTING, plan, seed, 200) for seed in range(4)]


@pytest.mark.slow
def test_two_workers_of_dask_give_the_same_outcomes() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        with executor(f"dask://{address}") as run:
            outcomes = list(run.map(improve, tasks()))
            assert len(run.client.scheduler_info()["workers"]) == 2  # type: ignore[attr-defined]
    assert outcomes == [improve(task) for task in tasks()]


@pytest.mark.slow
def test_ray_gives_the_same_outcomes() -> None:
    pytest.importorskip("ray")
    with executor("ray://local") as run:
        outcomes = list(run.map(improve, tasks()))
    assert outcomes == [improve(task) for task in tasks()]


def test_a_scheduler_that_does_not_answer_is_said() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(UserError, match="no Dask scheduler answers there"), executor("dask://127.0.0.1:1"):
        pass

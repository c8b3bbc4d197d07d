"""The published Kimi K3 schedule: its sums are those published, its order is safe, its prediction the committed one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from schedc.compiler.pipeline import limits_of
from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_program
from schedc.ir.verify import verify
from schedc.published.demand import Demand, cache_bytes, require_hbm
from schedc.published.form import MIB, Phase
from schedc.published.predict import machine_of, predict_published, program_for
from schedc.published.read import load_published
from schedc.target.target import parse_target

from .short import shortened

K3 = load_published("kimi-k3")
TARGET = parse_target(K3.target, K3.devices)
GIB = 2**30
PAGE = Path(__file__).parents[2] / "docs" / "kimi_k3.md"


def test_the_layers_are_69_of_kda_of_which_one_is_dense_and_24_of_latent_attention() -> None:
    kinds = K3.layer_kinds
    assert (len(kinds), kinds.count("dense"), kinds.count("kda"), kinds.count("mla")) == (93, 1, 68, 24)


def cycles_of(part: str) -> float:
    """Of a layer's part with two experts and one tile of the cache, from the steps alone."""
    total = 0.0
    for step in K3.parts[part]:
        times = {"choose": K3.experts.top_k, "members": 2}.get(step.do, 1)
        total += times * getattr(step, "cycles", 0.0) + (955.0 if step.do == "stream" else 0.0)
    return total


def test_cycles_of_a_layer_are_those_that_the_compiler_counts() -> None:
    assert cycles_of("mix_kda") + cycles_of("moe") == pytest.approx(35_500)
    assert cycles_of("mix_mla") + cycles_of("moe") == pytest.approx(42_700)
    assert cycles_of("mix_kda") + cycles_of("dense") == pytest.approx(29_700)


def test_cycles_of_a_step_are_the_published_total() -> None:
    timeline = simulate(program_for(K3, Demand(context=1)), machine_of(K3), {"count": [K3.total.experts]})
    assert timeline.cycles == pytest.approx(K3.total.cycles, rel=0.006)


def mib_of(*parts: str) -> float:
    needed = {name for part in parts for step in K3.parts[part] if isinstance(step, Phase) for name in step.needs}
    return sum(K3.tensors[name].mib for name in needed if K3.tensors[name].role == "weight" and "norms" not in name)


def test_bytes_of_a_layer_are_the_published_ones() -> None:
    assert mib_of("mix_kda") == pytest.approx(29.9, abs=0.06)
    assert mib_of("mix_mla") == pytest.approx(43.3, abs=0.06)
    assert mib_of("moe") == pytest.approx(7.0 + 7.9 + 8.75, abs=0.06)


def test_all_weights_are_the_published_73_gib() -> None:
    layers, experts = K3.layer_kinds, K3.experts
    mib = sum(mib_of(*K3.kinds[kind]) for kind in layers)
    mib += experts.members * experts.mib * len(K3.layers_of("experts"))
    embedding_and_head = 2 * K3.streams["head"].mib * (K3.streams["head"].tiles or 0)
    assert (mib + embedding_and_head) / 1024 == pytest.approx(K3.held.weights_gib, rel=0.015)


def test_a_step_reads_what_its_layers_hold() -> None:
    """Two experts a device; each tensor of a layer once."""
    timeline = simulate(program_for(K3, Demand()), machine_of(K3), {"count": [2]})
    read = {name: size / MIB for name, size in timeline.read.items()}
    assert read["kda_wide"] == pytest.approx(69 * 22.75)
    assert read["mla_q_a"] == pytest.approx(24 * 21.0)
    assert read["experts"] == pytest.approx(92 * 2 * 6.65, rel=1e-3)
    assert read["mla_cache"] == pytest.approx(24 * 9 * 0.28125)


@pytest.mark.parametrize("demand", [Demand(1), Demand(8, verify=True)])
def test_regions_are_within_what_the_publishers_compiler_reports(demand: Demand) -> None:
    rows = sum(pool.rows for pool in program_for(K3, demand).pools)
    assert rows * 512 / MIB <= demand.vmem_mib(K3)


@pytest.mark.parametrize("demand", [Demand(1, context=256), Demand(2, context=512)])
def test_the_published_order_is_safe_on_32_devices(demand: Demand) -> None:
    program = program_for(shortened(K3), demand)
    assert parse_program(print_program(program)) == program
    verdict = verify(program, limits_of(TARGET))
    assert verdict.proven, verdict


def test_the_proof_refuses_attention_weights_that_do_not_wait_for_the_experts() -> None:
    """What the single-buffered overlay pool forbids: next layer's projections before the last expert is done."""
    steps = list(K3.parts["moe"])
    early = next(step for step in steps if step.do == "start_next")
    steps.remove(early)
    steps.insert([step.do for step in steps].index("members"), early)
    wrong = shortened(K3).model_copy(update={"parts": {**K3.parts, "moe": tuple(steps)}})
    verdict = verify(program_for(wrong, Demand(context=256)), limits_of(TARGET))
    assert any("experts" in str(refusal) and "kda_wide" in str(refusal) for refusal in verdict.refusals)


def test_the_placement_cannot_hold_eight_long_sequences() -> None:
    demand = Demand(8, context=131_072)
    assert cache_bytes(K3, demand)["mla_cache"] / GIB == pytest.approx(54.0)
    with pytest.raises(UserError, match=r"8 sequences of 131,072 tokens: 54\.\d GiB of caches .* beside 73\.1 GiB"):
        predict_published(K3, demand)
    require_hbm(K3, Demand(8, verify=True, context=131_072), TARGET)


def test_a_step_is_no_shorter_than_its_bounds_and_stalls_are_of_the_hbm_or_of_others() -> None:
    found = predict_published(shortened(K3), Demand())
    assert found.step_us > max(found.bounds.values())
    assert found.stall_us == pytest.approx(found.exchange_us + found.transfer_us, abs=0.01)
    assert sum(phase.time_us for phase in found.phases) == pytest.approx(found.step_us, abs=0.1)
    assert found.even_us < found.step_us


def committed(step: str) -> float:
    line = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"{step}  "))
    return float(re.split(r"\s{2,}", line)[1].replace(",", ""))


def test_the_committed_table_is_what_the_command_prints() -> None:
    """To a quarter: constants are calibrated now and then. `schedc published kimi-k3` makes the page's first table."""
    assert predict_published(K3, Demand(1)).step_us == pytest.approx(committed("batch 1"), rel=0.25)


@pytest.mark.slow
def test_the_whole_published_step_is_safe() -> None:
    assert verify(program_for(K3, Demand()), limits_of(TARGET)).proven


def test_a_phase_with_other_cycles_changes_the_step_by_as_much() -> None:
    machine = machine_of(K3)
    slower = replace(machine, clock_ghz=machine.clock_ghz / 2)
    short = shortened(K3)
    one, two = predict_published(short, Demand(), machine), predict_published(short, Demand(), slower)
    assert two.compute_us == pytest.approx(2 * one.compute_us, rel=1e-4)

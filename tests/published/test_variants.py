"""Variants of the published schedule: edits of its data, proven as it is, and kept only if they are worth something."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from schedc.compiler.pipeline import limits_of
from schedc.errors import SpecError
from schedc.ir.verify import verify
from schedc.published import gains as gains_module
from schedc.published.demand import Demand
from schedc.published.form import Phase, StartNext
from schedc.published.gains import Tried, best_of, gains
from schedc.published.predict import program_for
from schedc.published.read import schedule_data
from schedc.published.variants import (
    Edit,
    Variant,
    edited,
    parse_variants,
    read_variants,
    schedule_of,
    with_variant,
)
from schedc.target.target import parse_target

from .short import shortened

DATA = schedule_data("kimi-k3")
VARIANTS = read_variants("kimi-k3")
PUBLISHED = schedule_of(DATA, "kimi-k3")
LIMITS = limits_of(parse_target(PUBLISHED.target, PUBLISHED.devices))


def names(part: str, edit: Edit) -> list[str]:
    steps = edited(DATA, edit)["parts"][part]
    return [step.get("name", step["do"]) for step in steps]


def test_a_step_is_moved_before_another() -> None:
    moved = names("moe", Edit(move="shared", part="moe", before="scores"))
    assert moved.index("shared") == moved.index("scores") - 1
    assert sorted(moved) == sorted(names("moe", Edit(set="vmem.mib", to=1.0)))


def test_transfers_are_taken_out_of_all_starts_and_started_elsewhere() -> None:
    data = edited(edited(DATA, Edit(take=("router",))), Edit(start_next=("router",), part="moe", after="gather"))
    found = schedule_of(data, "mine")
    starts = [step for step in found.parts["moe"] if isinstance(step, StartNext)]
    assert [("router" in step.tensors) for step in starts] == [False, True]
    assert not any("router" in step.tensors for step in found.parts["dense"] if isinstance(step, StartNext))


def test_a_step_is_dropped_and_a_value_set() -> None:
    assert "scores" not in names("moe", Edit(drop="scores", part="moe"))
    found = schedule_of(edited(DATA, Edit(set="parts.moe.shared.cycles", to=7)), "mine")
    assert next(s for s in found.parts["moe"] if isinstance(s, Phase) and s.name == "shared").cycles == 7
    assert schedule_of(DATA, "kimi-k3") == PUBLISHED, "edits leave the data that they are made of as it is"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit(take=("nothing",)), "take: nothing starts nothing"),
        (Edit(move="lunch", part="moe"), "move in moe: there is no step lunch"),
        (Edit(start=("router",), part="lunch"), "there is no part lunch"),
        (Edit(set="tensors.lunch.mib", to=1), "set tensors.lunch.mib: there is no lunch"),
    ],
)
def test_an_edit_that_finds_nothing_to_change_is_refused_with_its_place(edit: Edit, said: str) -> None:
    variant = Variant(name="mine", kind="order", idea="", edits=(edit,))
    with pytest.raises(SpecError, match=re.escape(f"edits[0]: {said}")):
        with_variant(DATA, variant)


def test_a_variant_that_leaves_no_schedule_is_refused_at_its_key() -> None:
    variant = Variant(name="mine", kind="order", idea="", edits=(Edit(set="experts.ahead", to=9),))
    with pytest.raises(SpecError, match=re.escape("experts.ahead: must be from 2 (at_once) to 4 (slots), not 9")):
        schedule_of(with_variant(DATA, variant), "mine")


def test_an_edit_does_one_thing() -> None:
    text = "{of: kimi-k3, vmem_mib: 60, vmem_source: here, variants: [{name: x, kind: order, idea: y, edits: [%s]}]}"
    with pytest.raises(SpecError, match=r"variants\[0\].edits\[0\]: an edit is one of take, start"):
        parse_variants(text % "{take: [router], drop: gather, part: moe}", "mine.yaml")
    with pytest.raises(SpecError, match=r"variants\[0\].edits\[0\].part: is needed to move"):
        parse_variants(text % "{move: gather}", "mine.yaml")


def kept(demand: Demand, monkeypatch: pytest.MonkeyPatch) -> list[Tried]:
    """What is worth something in a step of fewer layers."""
    predicted = gains_module.predict_published
    monkeypatch.setattr(gains_module, "predict_published", lambda s, *rest: predicted(shortened(s), *rest))
    return list(gains(VARIANTS, demand))


def test_all_variants_together_are_safe() -> None:
    data = DATA
    for variant in VARIANTS.variants:
        data = with_variant(data, variant)
    verdict = verify(program_for(shortened(schedule_of(data, "all")), Demand(context=256)), LIMITS)
    assert verdict.proven, verdict


@pytest.mark.parametrize("demand", [Demand(1), Demand(8, verify=True)], ids=["1", "8v"])
def test_what_is_kept_adds_up_and_is_safe(demand: Demand, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = kept(demand, monkeypatch)
    first, last = tried[0], best_of(tried, "collectives")
    assert first.prediction is not None and last.prediction is not None
    worth = sum(one.worth_us for one in tried if one.kept)
    assert last.prediction.step_us == pytest.approx(first.prediction.step_us - worth)
    assert all(one.worth_us > 0 for one in tried[1:] if one.kept)
    assert all(one.prediction.vmem_mib <= 60 for one in tried if one.kept and one.prediction)
    assert verify(program_for(shortened(last.schedule), replace(demand, context=256)), LIMITS).proven


def test_order_alone_keeps_exchanges_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = kept(Demand(1), monkeypatch)
    order, all_of_it = best_of(tried, "order"), best_of(tried, "collectives")
    assert order.schedule.exchanges == PUBLISHED.exchanges != all_of_it.schedule.exchanges
    assert {n: t.mib for n, t in order.schedule.tensors.items()} == {n: t.mib for n, t in PUBLISHED.tensors.items()}
    assert order.prediction is not None and tried[0].prediction is not None
    assert order.prediction.hbm_mib == pytest.approx(tried[0].prediction.hbm_mib)
    assert order.prediction.step_us < 0.95 * tried[0].prediction.step_us

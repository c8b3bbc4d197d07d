"""The map of VMEM: nothing lies on top of anything else, and what is said of it is so."""

import pytest

from schedc.cli.options import ScheduleOptions
from schedc.inspect.seen import refused, seen_too_large
from schedc.inspect.vmem_map import Rect
from schedc.inspect.vmem_text import vmem_lines
from schedc.spec.load import load_spec
from tests.inspect.compiled import MODELS, seen_model, subject


@pytest.mark.parametrize("model", MODELS)
def test_no_two_buffers_lie_in_the_same_rows_at_the_same_time(model: str) -> None:
    vmem = seen_model(model).vmem
    live = sorted((r for r in vmem.rects if r.kind == "live"), key=lambda r: r.began)
    here: list[Rect] = []
    for rect in live:
        here = [r for r in here if r.ended > rect.began]
        clash = [r for r in here if r.row < rect.row + rect.rows and rect.row < r.row + r.rows]
        assert not clash, (rect, clash)
        here.append(rect)


@pytest.mark.parametrize("model", MODELS)
def test_what_lies_in_a_slot_lies_in_its_buffer_while_that_is_live(model: str) -> None:
    vmem = seen_model(model).vmem
    live: dict[str, list[Rect]] = {}
    for rect in vmem.rects:
        if rect.kind == "live":
            live.setdefault(rect.buffer, []).append(rect)
    for rect in vmem.rects:
        if rect.kind != "live":
            around = [o for o in live[rect.buffer] if o.began <= rect.began + 1e-6 and rect.ended <= o.ended + 1e-6]
            assert around and around[0].row <= rect.row and rect.row + rect.rows <= around[0].row + around[0].rows, rect


@pytest.mark.parametrize("model", MODELS)
def test_the_peak_is_no_more_than_the_pools_and_no_less_than_its_largest_buffer(model: str) -> None:
    vmem = seen_model(model).vmem
    largest = vmem.at_peak()[0][1]
    assert largest <= vmem.peak_rows <= vmem.rows == sum(pool.rows for pool in subject(model).program.pools)
    assert sum(rows for _, rows in vmem.at_peak()) == vmem.peak_rows
    assert vmem.slack_rows == vmem.limit_rows - vmem.rows


def test_the_text_shows_every_pool_the_peak_and_the_slack() -> None:
    found = seen_model("smollm2-135m")
    lines = vmem_lines(found.vmem, found.history.title, width=60, height=16)
    text = "\n".join(lines)
    assert lines[0].startswith("smollm2-135m")
    assert {line.split()[-1] for line in lines[2:18]} <= {name for name, _, _ in found.vmem.pools}
    assert "^ peak" in text and "slack     47." in text and "weights_slot" in text
    cells = [line.split("MiB ")[1].rsplit(" ", 1)[0] for line in lines[2:18]]
    assert all(len(row) == 60 for row in cells)
    assert set("".join(cells)) <= set("·░▒▓█") and "█" in cells[-1]


def test_what_does_not_fit_is_laid_out_beyond_the_limit_with_its_clash() -> None:
    request = ScheduleOptions(settings=["depth=40"]).request(load_spec("smollm2-135m"))
    refusal = refused(request)
    assert refusal is not None
    vmem = seen_too_large(request, refusal).vmem
    assert vmem.clash == ("weights_slot",) and vmem.slack_rows < 0
    lines = vmem_lines(vmem, "too large", width=40, height=20)
    assert any("!" in line for line in lines[2:5]), "what is highest lies beyond the limit"
    assert not any("!" in line for line in lines[17:22])
    assert "cannot be in VMEM together: weights_slot" in lines

"""The page in headless Chromium: it opens without errors and without the network, shows what is pointed at, zooms, and
can be read at 1280×800 in light and in dark."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schedc.cli.options import ScheduleOptions
from schedc.compiler.written import read_source
from schedc.inspect.diff import Diff, diff
from schedc.inspect.diff_data import diff_data
from schedc.inspect.html_page import page
from schedc.inspect.page_data import decode, schedule_data
from schedc.inspect.runs import runs_of
from schedc.inspect.seen import seen
from schedc.inspect.subject import Subject, of_request, of_source
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.inspect.browser import HEIGHT, WIDTH, opened, started
from tests.inspect.compiled import MODELS, seen_model

pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {model: page([seen_model(model)]) for model in MODELS}
    made["both"] = page([seen_model(model) for model in MODELS])
    first, second, found = differing()
    made["differs"] = page([seen(first), seen(second)], differs=diff_data(found, first.program, second.program))
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*MODELS, "both", "differs"])
def test_it_opens_without_errors_and_all_text_can_be_read(
    browser: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    with opened(browser, pages[name], scheme, watch_text=True) as shown:
        assert shown.tab.evaluate("document.documentElement.dataset.theme") == scheme
        shown.show(20_000, 34_000)
        shown.point_at("core", 100)
        assert shown.said == []
        assert [url for url in shown.asked if not url.startswith("file:")] == []
        drawn = shown.tab.evaluate("drawnTexts")
        assert len(drawn) > 40
        faint = [text for text in drawn if contrast(css(text["colour"]), css(text["below"])) < 4.5]
        assert not faint, faint[:5]
        small = [text for text in drawn if float(text["font"].split("px")[0].split()[-1]) < 11]
        assert not small, small[:5]
        elements = shown.tab.evaluate(READ)
        assert len(elements) > 15
        faint = [e for e in elements if contrast(css(e["colour"]), css(e["ground"])) < 4.5]
        assert not faint, faint[:5]
        assert not [e for e in elements if e["size"] < 11]
        assert not [e for e in elements if e["right"] > WIDTH or (e["bottom"] > HEIGHT and not e["scrolls"])]


def test_pointing_at_a_slice_shows_its_operation_and_its_lines(browser: Any, pages: dict[str, Path]) -> None:
    found = seen_model("smollm2-135m")
    runs = runs_of(found.history)
    kernel, ir = found.sources.kernel.split("\n"), found.sources.ir.split("\n")
    with opened(browser, pages["smollm2-135m"]) as shown:
        long = max(range(300, 500), key=lambda n: runs[n].ended - runs[n].began)
        shown.show(runs[long].began - 500, runs[long].ended + 500)
        shown.point_at("core", long)
        op = runs[long].op
        line = found.sources.kernel_lines[op] or 0
        tip = shown.tab.inner_text("#tip")
        assert f"kernel.py:{line}, program.ir:{found.sources.ir_lines[op]}" in tip
        here = [text.split("  ", 1)[1].strip() for text in shown.tab.locator("#details .here").all_inner_texts()]
        assert here == [kernel[line - 1].strip(), ir[found.sources.ir_lines[op] - 1].strip()]
        first = shown.tab.inner_text("#details")
        shown.point_at("core", long + 1)
        assert shown.tab.inner_text("#details") != first
        shown.tab.mouse.move(5, 5)
        shown.settle()
        assert not shown.tab.is_visible("#tip")


def test_pointing_at_a_transfer_shows_its_bytes_and_leads_to_its_wait_and_use(
    browser: Any, pages: dict[str, Path]
) -> None:
    found = seen_model("smollm2-135m").history
    hbm = [t for t in found.transfers if t.lane == "hbm"]
    number = next(n for n, t in enumerate(hbm) if n > 100 and t.bytes > 10**6 and t.first_use is not None)
    transfer = hbm[number]
    with opened(browser, pages["smollm2-135m"]) as shown:
        shown.show(transfer.issued - 2000, transfer.ended + 2000)
        shown.point_at("hbm", number)
        said = shown.tab.inner_text("#details")
        assert f"{transfer.bytes / 2**20:.2f} MiB" in said
        assert "first used" in said and "waited for" in said
        assert shown.tab.evaluate("timeline.hovered.i") == number


def test_idle_hbm_says_why(browser: Any, pages: dict[str, Path]) -> None:
    idle = schedule("smollm2-135m")["idle"]
    began = decode(idle["began"])
    for cause, text in enumerate(idle["causes"]):
        number = next((n for n, c in enumerate(idle["cause"]) if c == cause and n > 10), None)
        if number is not None:
            with opened(browser, pages["smollm2-135m"]) as shown:
                shown.show(began[number] - 500, began[number] + idle["length"][number] + 500)
                shown.point_at("idle", number)
                assert "HBM idle" in shown.tab.inner_text("#details") and text in shown.tab.inner_text("#details")


def test_the_map_of_vmem_says_what_lies_where(browser: Any, pages: dict[str, Path]) -> None:
    data = schedule("smollm2-135m")["vmem"]
    number = next(n for n, buffer in enumerate(data["buffers"]) if buffer["name"] == "weights_slot")
    held = data["buffers"][number]["held"]
    rect = next(i for i, arrives in enumerate(held["arrives"]) if not arrives and i > 40)
    began = decode(held["began"])[rect]
    with opened(browser, pages["smollm2-135m"]) as shown:
        shown.show(began - 1000, began + held["length"][rect] + 1000)
        shown.point_at("held", [number, rect])  # type: ignore[arg-type]
        said = shown.tab.inner_text("#details")
        assert said.startswith(f"weights_slot<{held['row'][rect] // data['buffers'][number]['rows']}>")
        assert "there, still to be read" in said


def test_wheel_drag_and_keys_change_what_is_shown(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["kimi-k3-mini"]) as shown:
        whole, before = shown.view(), shown.pixels()
        shown.tab.mouse.move(700, 300)
        shown.tab.mouse.wheel(0, -500)
        near, after = shown.view(), shown.pixels()
        assert whole[0] < near[0] and near[1] < whole[1] and before != after
        assert (near[1] - near[0]) < 0.5 * (whole[1] - whole[0])
        shown.tab.mouse.down()
        shown.tab.mouse.move(600, 300, steps=4)
        shown.tab.mouse.up()
        moved = shown.view()
        assert moved[0] > near[0] and moved[1] - moved[0] == pytest.approx(near[1] - near[0])
        shown.tab.keyboard.press("w")
        nearer = shown.view()
        assert nearer[1] - nearer[0] == pytest.approx(0.7 * (moved[1] - moved[0]))
        shown.tab.keyboard.press("0")
        assert shown.view() == whole
        shown.tab.fill("#query", "wait weights")
        shown.tab.press("#query", "Enter")
        assert shown.tab.inner_text("#details").startswith("wait weights_arrived")
        assert shown.view() != whole
        shown.tab.fill("#query", "nothing is called so")
        shown.tab.press("#query", "Enter")
        assert "none" in (shown.tab.get_attribute("#query", "class") or "")
        light = shown.pixels()
        shown.tab.click("#theme")
        shown.settle()
        assert shown.pixels() != light
        assert shown.said == []


def test_two_schedules_are_below_each_other_on_the_same_axis(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["both"]) as shown:
        shown.show(20_000, 30_000)
        tops = shown.tab.evaluate("timeline.panels.map((panel) => panel.lanes[0].y)")
        ends = shown.tab.evaluate("timeline.panels.map((panel) => panel.lanes.at(-1).y + panel.lanes.at(-1).height)")
        assert tops[0] < ends[0] < tops[1] < ends[1]
        boxes = shown.tab.evaluate("timeline.panels.map((panel) => panel.axis.x(25000))")
        assert boxes[0] == boxes[1]
        for panel, model in enumerate(MODELS):
            data = schedule(model)["core"]
            began = decode(data["began"])
            slice_ = next(i for i, time in enumerate(began) if time > 22_000 and data["length"][i] > 300)
            shown.point_at("core", slice_, panel)
            name = schedule(model)["ops"]["name"][data["op"][slice_]]
            assert shown.tab.inner_text("#details").startswith(name)
        shown.tab.set_viewport_size({"width": WIDTH, "height": 500})
        shown.tab.mouse.move(30, 300)
        shown.tab.evaluate("document.getElementById('lanes').scrollTop = 0")
        before = shown.view()
        shown.tab.mouse.wheel(0, 120)
        shown.tab.wait_for_function("document.getElementById('lanes').scrollTop === 120")
        assert shown.view() == before, "over the names of the lanes the wheel scrolls"


def test_what_differs_is_listed_and_what_moved_is_marked_and_found(browser: Any, pages: dict[str, Path]) -> None:
    first, second, found = differing()
    step = next(figure for figure in found.figures if figure.name == "step")
    with opened(browser, pages["differs"]) as shown:
        listed = shown.tab.inner_text("#details")
        assert f"{step.first:,.1f}" in listed and f"{step.change:+,.1f}" in listed
        assert all(one.transfer in listed for one in found.moved)
        for panel, subject, own, other in ((0, first, "first", "second"), (1, second, "second", "first")):
            marked = shown.tab.evaluate(f"timeline.panels[{panel}].moved.n")
            sides = [(getattr(one, own), getattr(one, other)) for one in found.moved]
            more = [n for here, there in sides for phase, n in here.items() if n > there.get(phase, 0)]
            assert 30 < marked == sum(more) < len(subject.flow.moved)
        entry = next(n for n, one in enumerate(found.moved) if one.transfer == "w_qkv -> weights_slot")
        times = []
        for _ in range(2):
            shown.tab.click(f"[data-moved='{entry}'][data-panel='0']")
            shown.settle()
            said = shown.tab.inner_text("#details")
            assert said.startswith("start w_qkv -> weights_slot") and "started elsewhere in the other" in said
            assert ", qkv" in said and shown.tab.evaluate("timeline.pinned.panel.letter") == "A"
            times.append(shown.tab.evaluate("timeline.pinned.time"))
            shown.tab.evaluate("timeline.say(null)")
        assert times[0] < times[1], "the next one"
        shown.tab.keyboard.press("Escape")
        shown.tab.click("#differences")
        assert "Getting about" in shown.tab.inner_text("#details")
        shown.tab.click("#differences")
        assert "Transfers issued elsewhere" in shown.tab.inner_text("#details")
        assert shown.said == []


def test_a_program_without_phases_has_no_lane_of_them_and_the_lines_of_its_file(browser: Any, tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "examples" / "exchange.ir"
    subject = of_source(read_source(str(file)), parse_target("tpu7x", 2))
    (tmp_path / "page.html").write_text(page([seen(subject)]), encoding="utf-8")
    with opened(browser, tmp_path / "page.html") as shown:
        assert shown.tab.evaluate("timeline.panels[0].lanes.map((lane) => lane.kind)")[:2] == ["core", "path"]
        shown.point_at("links", 0)
        assert "the other device of this chip" in shown.tab.inner_text("#details")
        line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if "remote.start" in text)
        assert f"exchange.ir:{line}" in shown.tab.inner_text("#tip")
        assert f"exchange.ir, line {line}" in shown.tab.inner_text("#details")
        assert shown.said == []


def test_a_page_of_one_schedule_lists_no_differences(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["smollm2-135m"]) as shown:
        assert not shown.tab.is_visible("#differences") and "Getting about" in shown.tab.inner_text("#details")


def test_the_same_schedule_gives_the_same_page() -> None:
    found = seen_model("smollm2-135m")
    assert page([found]) == page([found])


def test_columns_are_whole_numbers_that_lead_back_to_the_times() -> None:
    found = seen_model("kimi-k3-mini").history
    data = json.loads(json.dumps(schedule("kimi-k3-mini")))
    hbm = [t for t in found.transfers if t.lane == "hbm"]
    issued = decode(data["hbm"]["issued"])
    assert issued == [round(t.issued) for t in hbm]
    began = [a + b for a, b in zip(issued, data["hbm"]["began"], strict=True)]
    assert [a + b for a, b in zip(began, data["hbm"]["ended"], strict=True)] == [round(t.ended) for t in hbm]
    runs = runs_of(found)
    start = decode(data["hbm"]["start"])
    assert all(runs[n].first <= t.step <= runs[n].last for n, t in zip(start, hbm, strict=True))
    uses = [-1 if later < 0 else n + later for n, later in zip(start, data["hbm"]["use"], strict=True)]
    assert all((n < 0) == (t.first_use is None) for n, t in zip(uses, hbm, strict=True))
    assert all(runs[n].first == t.first_use for n, t in zip(uses, hbm, strict=True) if n >= 0)


@pytest.mark.slow
def test_the_page_of_a_step_of_kimi_k3_is_small_and_opens(browser: Any, tmp_path: Path) -> None:
    options = ScheduleOptions(target="tpu7x:2x2x4", context=2048)
    found = seen(of_request(options.request(load_spec("kimi-k3"))))
    text = page([found])
    assert len(text.encode()) < 5_000_000
    assert len(found.history.layers) == 93
    (tmp_path / "k3.html").write_text(text, encoding="utf-8")
    with opened(browser, tmp_path / "k3.html") as shown:
        assert shown.view() == (0, round(found.history.timeline.step_ns))
        ends = shown.tab.evaluate("timeline.panels[0].lanes.map((lane) => lane.y + lane.height)")
        assert max(ends) <= shown.tab.evaluate("document.getElementById('lanes').clientHeight"), "VMEM is in sight"
        assert shown.tab.evaluate("timeline.panels[0].lanes.filter((lane) => lane.label === 'links').length") == 1
        shown.show(1_000_000, 1_040_000)
        links = [t for t in found.history.transfers if t.lane == "link"]
        message = next(i for i, t in enumerate(links) if t.began > 1_005_000 and t.route == 3)
        shown.point_at("links", message)
        assert "to chip 3 sent" in shown.tab.inner_text("#details").replace("\n", " ")
        assert shown.said == []


@cache
def differing() -> tuple[Subject, Subject, Diff]:
    """SmolLM2 just in time, and with a ring."""
    options = (ScheduleOptions(policy="just_in_time", context=1024), ScheduleOptions(context=1024))
    first, second = (of_request(one.request(load_spec("smollm2-135m"))) for one in options)
    return first, second, diff(first, second)


@cache
def schedule(model: str) -> dict[str, Any]:
    return schedule_data(seen_model(model))


READ = """() => [...document.querySelectorAll("header *, #legend span, #details *, #tip *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.offsetParent !== null)
  .map((e) => {
    let ground = e;
    const clear = (c) => c === "rgba(0, 0, 0, 0)" || c.includes("0.14)") || c.includes("0.2)");
    while (ground.parentElement && clear(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    return { text: e.textContent.slice(0, 40), colour: style.color, ground: getComputedStyle(ground).backgroundColor,
      size: parseFloat(style.fontSize), right: Math.min(box.left, box.right), bottom: box.top,
      scrolls: Boolean(e.closest("#details")) };
  })"""
"""Of every element with text: its colour, what is behind it, its size in px and where it begins."""


def css(colour: str) -> list[float]:
    if colour.startswith("#"):
        return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return [float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]]


def contrast(one: list[float], other: list[float]) -> float:
    """Of two colours by WCAG 2, 1 to 21; 4.5 is what text needs."""

    def luminance(colour: list[float]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)

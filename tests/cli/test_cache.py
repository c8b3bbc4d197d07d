"""`schedc cache`: what is kept, and being rid of it."""

import os
from pathlib import Path

import pytest

from schedc.cache.store import ENTRY, Store

from .conftest import Command, refused


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path / "kept"))
    store = Store(tmp_path / "kept" / "results")
    store.put("compile", "a" * 64, {}, "smollm2 for tpu7x", {"bundles": b"x" * 2**21})
    store.put("proof", "b" * 64, {}, "a program")
    os.utime(store.folder / "proof" / ("b" * 64) / ENTRY, (1000.0, 1000.0))
    return store


def test_look_lists_what_is_kept(schedc: Command, store: Store):
    said = schedc("cache", "look").out
    assert "smollm2 for tpu7x" in said and "2 entries, 2.0 MiB in " in said and "just now" in said
    data = schedc("cache", "look", "--json").json()
    assert [(e["kind"], e["of"]) for e in data["entries"]] == [("compile", "smollm2 for tpu7x"), ("proof", "a program")]
    assert data["bytes"] == sum(e["bytes"] for e in data["entries"]) > 2**21
    assert schedc("cache", "path").out.strip() == data["folder"] == str(store.folder)


def test_clear_removes_by_age_by_kind_and_all(schedc: Command, store: Store):
    assert schedc("cache", "clear", "--unused-for", "1", "--json").json()["removed"] == 1
    assert [entry.kind for entry in store.entries()] == ["compile"]
    message = refused(schedc("cache", "clear", "--kind", "proof"))
    assert message == "--kind proof: nothing of that kind is kept (compile)"
    assert schedc("cache", "clear", "--kind", "compile").out.startswith("removed 1 entry, 2.0 MiB")
    assert schedc("cache", "clear").out.startswith("removed 0 entries")


def test_a_cache_that_is_off_says_so(schedc: Command, store: Store, monkeypatch: pytest.MonkeyPatch):
    for arguments in (("--no-cache", "cache", "look"), ("cache", "look", "--no-cache")):
        assert refused(schedc(*arguments)) == "the cache is off (--no-cache, or the variable SCHEDC_NO_CACHE)"
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_NO_CACHE", "1")
    assert "the cache is off" in refused(schedc("cache", "clear"))

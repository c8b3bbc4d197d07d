"""Entries are whole or not there, found again by their key, listed and cleared."""

import json
import os
import threading
from pathlib import Path

import pytest

from schedc import cache
from schedc.cache.folder import cache_folder
from schedc.cache.keys import code_digest, key_of
from schedc.cache.store import ENTRY, Store


def test_what_was_put_is_found_again_with_its_files(tmp_path: Path):
    store = Store(tmp_path / "deep" / "cache")
    assert store.get("compile", "a") is None
    store.put("compile", "a", {"cycles": 31}, "a kernel", {"bundles": b"0x0 : {}"})
    assert store.get("compile", "a") == {"cycles": 31}
    assert store.file("compile", "a", "bundles") == b"0x0 : {}"
    assert store.get("compile", "b") is store.get("proof", "a") is store.file("compile", "a", "other") is None
    store.put("compile", "a", {"cycles": 32}, "a kernel")
    assert store.get("compile", "a") == {"cycles": 32} and store.file("compile", "a", "bundles") is None


@pytest.mark.parametrize("damage", ["", "{", '{"label": "x"}', "[]", "\xff"])
def test_a_damaged_entry_is_as_if_it_were_not_there(tmp_path: Path, damage: str):
    store = Store(tmp_path)
    store.put("compile", "a", 1, "a")
    (tmp_path / "compile" / "a" / ENTRY).write_bytes(damage.encode("latin1"))
    assert store.get("compile", "a") is None
    store.put("compile", "a", 2, "a")
    assert store.get("compile", "a") == 2


def test_many_writers_at_once_leave_one_whole_entry(tmp_path: Path):
    store, payload = Store(tmp_path), "x" * 100_000

    def write(number: int) -> None:
        for _ in range(10):
            store.put("compile", "a", [number, payload], str(number), {"same": str(number).encode()})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.get("compile", "a")
    assert found[1] == payload
    assert store.file("compile", "a", "same") == str(found[0]).encode()
    assert [path.name for path in (tmp_path / "compile").iterdir()] == ["a"]


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    store = Store(tmp_path / "file")
    store.put("compile", "a", 1, "a")
    assert store.get("compile", "a") is None and store.entries() == []


def test_entries_are_listed_by_kind_the_last_used_first_and_cleared_by_age_or_kind(tmp_path: Path):
    store = Store(tmp_path)
    for number, (kind, key) in enumerate([("compile", "old"), ("proof", "p"), ("compile", "new")]):
        store.put(kind, key, "x" * 100, f"label of {key}", {"more": b"y" * 1000})
        os.utime(tmp_path / kind / key / ENTRY, (1000.0 + number, 1000.0 + number))
    assert [(e.kind, e.key, e.label) for e in store.entries()] == [
        ("compile", "new", "label of new"),
        ("compile", "old", "label of old"),
        ("proof", "p", "label of p"),
    ]
    assert all(e.bytes > 1100 for e in store.entries())
    assert [e.key for e in store.clear(unused_since=1001.0)] == ["old"]
    assert [e.key for e in store.clear("proof")] == ["p"]
    assert store.get("compile", "new") is not None, "and it is used now"
    assert store.clear(unused_since=2000.0) == []
    assert [e.key for e in store.clear()] == ["new"] and store.entries() == []


def test_the_folder_is_that_of_the_variable_else_that_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    with cache.switched_off():
        assert cache.active() is None
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    store = cache.active()
    assert store is not None and store.folder == tmp_path / "results"
    monkeypatch.setenv("SCHEDC_NO_CACHE", "1")
    assert cache.active() is None
    monkeypatch.delenv("SCHEDC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "schedc"


def test_what_is_found_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path))
    with cache.found() as found:
        store = cache.active()
        assert store is not None
        store.get("proof", "a")
        store.put("proof", "a", 1, "a")
        assert found == []
        store.get("proof", "a")
    assert found == ["proof"]


def test_a_key_is_of_every_part_and_of_all_code(tmp_path: Path):
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert len({key_of({"a": 1}), key_of({"a": 2}), key_of({"a": "1"}), key_of({"b": 1})}) == 4
    code = tmp_path / "code"
    code.mkdir()
    (code / "a.py").write_text("x = 1\n")
    before = code_digest(code)
    (code / "a.py").write_text("x = 2\n")
    assert code_digest(code) == before, "read once a process"
    code_digest.cache_clear()
    assert code_digest(code) != before
    assert json.loads(json.dumps(before)) == before and len(before) == 64

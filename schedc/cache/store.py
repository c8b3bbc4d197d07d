"""A folder of kept results: `<kind>/<key>/entry.json`, and files beside it.

An entry appears whole or not at all: it is written beside its place and renamed. A cache that cannot be written, or an
entry that cannot be read, is as if it were not there.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENTRY = "entry.json"
_DRAFT = ".draft-"


@dataclass(frozen=True)
class Entry:
    """`label` says what it is of; `used` is when it was last written or found, in seconds since 1970."""

    kind: str
    key: str
    label: str
    bytes: int
    used: float


@dataclass(frozen=True)
class Store:
    folder: Path
    found: list[str] | None = None
    """Gets the kind of every entry that is found."""

    def get(self, kind: str, key: str) -> Any:
        """What was kept, None if nothing was."""
        path = self._place(kind, key) / ENTRY
        try:
            data = json.loads(path.read_text(encoding="utf-8"))["data"]
            os.utime(path)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if self.found is not None:
            self.found.append(kind)
        return data

    def file(self, kind: str, key: str, name: str) -> bytes | None:
        """A file beside an entry."""
        try:
            return (self._place(kind, key) / name).read_bytes()
        except OSError:
            return None

    def put(self, kind: str, key: str, data: Any, label: str, files: Mapping[str, bytes] | None = None) -> None:
        """`data` is plain data. An entry that is there already is replaced."""
        place = self._place(kind, key)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=place.parent))
        except OSError:
            return
        try:
            for name, content in (files or {}).items():
                (draft / name).write_bytes(content)
            (draft / ENTRY).write_text(json.dumps({"label": label, "data": data}), encoding="utf-8")
            if place.exists():
                shutil.rmtree(place, ignore_errors=True)
            draft.rename(place)
        except OSError:  # a full disk, or another process was quicker
            pass
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """All that is kept, by kind, the last used first."""
        found = [entry for path in self._places() if (entry := _entry(path)) is not None]
        return sorted(found, key=lambda entry: (entry.kind, -entry.used, entry.key))

    def clear(self, kind: str | None = None, unused_since: float | None = None) -> list[Entry]:
        """Remove entries of a kind, or all, that were last used before a time, or at any. Returns them."""
        removed = [
            entry
            for entry in self.entries()
            if kind in (None, entry.kind) and (unused_since is None or entry.used < unused_since)
        ]
        for entry in removed:
            shutil.rmtree(self._place(entry.kind, entry.key), ignore_errors=True)
        if kind is None and unused_since is None:  # drafts that a killed process left
            for path in self.folder.glob(f"*/{_DRAFT}*"):
                shutil.rmtree(path, ignore_errors=True)
        return removed

    def _place(self, kind: str, key: str) -> Path:
        return self.folder / kind / key

    def _places(self) -> Iterator[Path]:
        for path in sorted(self.folder.glob(f"*/*/{ENTRY}")):
            if not path.parent.name.startswith(_DRAFT):
                yield path


def _entry(path: Path) -> Entry | None:
    try:
        label = json.loads(path.read_text(encoding="utf-8"))["label"]
        size = sum(file.stat().st_size for file in path.parent.iterdir())
        return Entry(path.parent.parent.name, path.parent.name, str(label), size, path.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        return None

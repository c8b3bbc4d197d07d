"""What a kept result depends on, as one name: equal names mean equal results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any


def key_of(parts: Mapping[str, Any]) -> str:
    """64 hexadecimal digits of everything in `parts`, which is plain data."""
    return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@cache
def code_digest(*folders: Path) -> str:
    """Of all Python and YAML files below: a result of other code is another result, whatever its version says."""
    digest = sha256()
    for folder in folders:
        paths = [folder] if folder.is_file() else sorted((*folder.rglob("*.py"), *folder.rglob("*.yaml")))
        for path in paths:
            digest.update(path.relative_to(folder.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

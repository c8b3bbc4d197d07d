"""Writing a file whole or not at all."""

import os
from pathlib import Path

from schedc.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Raises UserError if it cannot be written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None

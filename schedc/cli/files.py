"""Writing a file whole or not at all."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from schedc.errors import UserError


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A draft of the same suffix beside `path`, which takes its place when the block ends without an error.

    Links are followed, permissions of a file that is there are kept. Raises UserError if it cannot be written.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise UserError(f"{path}: cannot be written: not a regular file")
        draft = target.with_name(f".{os.getpid()}.{target.name}")
        draft.touch()
        try:
            yield draft
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o7777)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def require_suffix(path: Path, known: Sequence[str], what: str) -> str:
    """The one of `known` that it ends with. `what` is said before their list; raises UserError for any other."""
    found = next((suffix for suffix in known if path.name.endswith(suffix) and path.name != suffix), None)
    if found is None:
        raise UserError(f"{path}: {what} {', '.join(known)}")
    return found


def require_writable(path: Path) -> None:
    """Before work that would be lost. Raises UserError for a path at which `write_text` cannot write."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise UserError(f"{path}: cannot be written: not a regular file")
    if not target.parent.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{path}: cannot be written: no permission to write in {target.parent}")


def require_different(paths: Mapping[str, Path | None]) -> None:
    """Of options and the files they write. Raises UserError for a file that one would write over what another wrote."""
    options: dict[Path, str] = {}
    for option, path in paths.items():
        if path is not None and (other := options.setdefault(path.resolve(), option)) != option:
            raise UserError(f"{path}: cannot be written by {other} and {option}; name two files")


def write_text(path: Path, text: str) -> None:
    """As `written` does. Raises UserError if it cannot be written."""
    with written(path) as draft:
        draft.write_text(text, encoding="utf-8")

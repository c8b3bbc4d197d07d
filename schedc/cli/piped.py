"""What is printed where there is no terminal: the same lines, without the spaces that fill them up."""

import io
import re
from typing import TextIO, cast

_TRAILING = re.compile(r" +(?=\n)")


class Trimmed(io.TextIOBase):
    """Writes to `file` all but the spaces before the ends of lines."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._held = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._file.encoding

    def write(self, text: str) -> int:
        whole = self._held + text
        kept = whole.rstrip(" ")
        self._held = whole[len(kept) :]
        self._file.write(_TRAILING.sub("", kept))
        return len(text)

    def flush(self) -> None:
        self._file.flush()

    def isatty(self) -> bool:
        return False


def trimmed(file: TextIO) -> TextIO:
    return cast(TextIO, Trimmed(file))

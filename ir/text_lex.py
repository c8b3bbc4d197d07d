"""A cursor over the text of a program: skips blanks and comments, matches tokens, points at errors."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import NoReturn

from schedc.ir.errors import IrSyntaxError
from schedc.ir.text_print import NAME

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_WORD = re.compile(r"[A-Za-z0-9_.]+")
_FOUND = re.compile(r'[A-Za-z0-9_.]+|"[^"\n]*"?|\S')
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?(?:inf|nan)\b|-?[0-9]+(?:(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)|\.[0-9]+)")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')

MOST_DIGITS = 40
"""Digits of an integer."""
MOST_NESTED = 64
"""Blocks in blocks, and brackets in brackets of an expression: what reads a program goes as deep as they do."""
_SHOWN = 40
"""Characters of a found word that an error shows."""


class Cursor:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._crossed_line = True
        self._nested: dict[str, int] = {}
        self.operations: list[int] = []
        """Offsets of the operations read so far, in the order of `program.walk`."""
        self._skip()

    @property
    def offset(self) -> int:
        """Where the next token is."""
        return self._at

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_left(self._line_ends, offset)
        return line + 1, offset - (self._line_ends[line - 1] if line else -1)

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]

    def try_match(self, pattern: re.Pattern[str]) -> str | None:
        """The text that `pattern` matches here, consumed, or None."""
        match = pattern.match(self._text, self._at)
        if match is None or match.end() == self._at:
            return None
        self._at = match.end()
        self._skip()
        return match.group()

    def peek(self, *symbols: str) -> bool:
        return self._text.startswith(symbols, self._at)

    def try_symbols(self, symbols: tuple[str, ...]) -> str | None:
        """The first of `symbols` that stands here, consumed."""
        if not self._text.startswith(symbols, self._at):
            return None
        return next(symbol for symbol in symbols if self.try_symbol(symbol))

    def try_symbol(self, symbol: str) -> bool:
        if not self._text.startswith(symbol, self._at):
            return False
        self._at += len(symbol)
        self._skip()
        return True

    def symbol(self, symbol: str) -> None:
        if not self.try_symbol(symbol):
            self.fail(f"`{symbol}`")

    def try_words(self, words: Collection[str]) -> str | None:
        """The word here, consumed, if it is one of `words`."""
        match = _WORD.match(self._text, self._at)
        if match is None or match.group() not in words:
            return None
        self._at = match.end()
        self._skip()
        return match.group()

    def try_word(self, word: str) -> bool:
        return self.try_words((word,)) is not None

    def word(self, *choices: str) -> str:
        found = self.try_words(choices)
        return found if found is not None else self.fail(" or ".join(f"`{choice}`" for choice in choices))

    def name(self, what: str, pattern: re.Pattern[str] = NAME) -> str:
        if (quoted := self.try_string()) is not None:
            return quoted
        name = self.try_match(pattern)
        return name if name is not None else self.fail(what)

    def try_name(self) -> str | None:
        return self.try_match(NAME)

    def try_string(self) -> str | None:
        if not self.peek('"'):
            return None
        match = _STRING.match(self._text, self._at)
        if match is None:
            self.fail('a string that ends with `"` on this line')
        try:
            value: str = json.loads(match.group(), strict=False)
            value.encode()
        except (json.JSONDecodeError, UnicodeEncodeError):
            self.fail("a string with the escapes of JSON")
        self._at = match.end()
        self._skip()
        return value

    def try_integer(self) -> int | None:
        match = _INTEGER.match(self._text, self._at)
        if match is None:
            return None
        if match.end() - match.start() > MOST_DIGITS:
            self.fail(f"an integer of at most {MOST_DIGITS} digits")
        self._at = match.end()
        self._skip()
        return int(match.group())

    def integer(self, what: str = "an integer") -> int:
        value = self.try_integer()
        return value if value is not None else self.fail(what)

    def try_float(self) -> float | None:
        number = self.try_match(_NUMBER)
        return None if number is None else float(number)

    @contextmanager
    def nested(self, what: str) -> Iterator[None]:
        """Fail if this is too deep within others of its kind."""
        depth = self._nested.get(what, 0)
        if depth == MOST_NESTED:
            self.fail_at(self._at, f"at most {MOST_NESTED} {what} within each other")
        self._nested[what] = depth + 1
        yield
        self._nested[what] = depth

    def at_line_end(self) -> bool:
        """Whether the line ended after the last token, or the block or the text ends here."""
        return self._crossed_line or self.peek("}") or self.at_end()

    def end_line(self) -> None:
        if not self.at_line_end():
            self.fail("the end of the line")

    def at_end(self) -> bool:
        return self._at == len(self._text)

    def fail(self, expected: str) -> NoReturn:
        """The next token cannot go on with what was begun; the fault is on the line where that stands."""
        if self._crossed_line and self._last_end:
            raise IrSyntaxError(*self.position(self._last_end), expected, "the end of the line")
        self.fail_at(self._at, expected)

    def fail_at(self, offset: int, expected: str) -> NoReturn:
        """The token at `offset` begins what should not stand there."""
        found = "the end of the text"
        if (match := _FOUND.match(self._text, offset)) is not None:
            word = match.group()
            found = f"`{word if len(word) <= _SHOWN else word[:_SHOWN] + '…'}`"
        raise IrSyntaxError(*self.position(offset), expected, found)

    def _skip(self) -> None:
        self._last_end = self._at
        match = _BLANK.match(self._text, self._at)
        assert match is not None
        self._crossed_line = "\n" in match.group()
        self._at = match.end()

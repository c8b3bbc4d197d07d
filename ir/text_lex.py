"""A cursor over the text of a program: skips blanks and comments, matches tokens, points at errors."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from schedc.ir.errors import IrSyntaxError
from schedc.ir.text_print import NAME

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_WORD = re.compile(r"[A-Za-z0-9_.]+|\S")
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?(?:inf|nan)\b|-?[0-9]+(?:(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)|\.[0-9]+)")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


class Cursor:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._crossed_line = True
        self._skip()

    def try_match(self, pattern: re.Pattern[str]) -> str | None:
        """The text that `pattern` matches here, consumed, or None."""
        match = pattern.match(self._text, self._at)
        if match is None or match.end() == self._at:
            return None
        self._at = match.end()
        self._skip()
        return match.group()

    def peek(self, symbol: str) -> bool:
        return self._text.startswith(symbol, self._at)

    def try_symbol(self, symbol: str) -> bool:
        if not self.peek(symbol):
            return False
        self._at += len(symbol)
        self._skip()
        return True

    def symbol(self, symbol: str) -> None:
        if not self.try_symbol(symbol):
            self.fail(f"`{symbol}`")

    def try_word(self, word: str) -> bool:
        return self.try_match(re.compile(re.escape(word) + r"(?![A-Za-z0-9_.])")) is not None

    def word(self, *choices: str) -> str:
        found = next((choice for choice in choices if self.try_word(choice)), None)
        return found if found is not None else self.fail(" or ".join(f"`{choice}`" for choice in choices))

    def name(self, what: str, pattern: re.Pattern[str] = NAME) -> str:
        if (quoted := self.try_string()) is not None:
            return quoted
        name = self.try_match(pattern)
        return name if name is not None else self.fail(what)

    def try_name(self) -> str | None:
        return self.try_match(NAME)

    def try_string(self) -> str | None:
        quoted = self.try_match(_STRING)
        return None if quoted is None else json.loads(quoted)

    def try_integer(self) -> int | None:
        digits = self.try_match(_INTEGER)
        return None if digits is None else int(digits)

    def integer(self, what: str = "an integer") -> int:
        value = self.try_integer()
        return value if value is not None else self.fail(what)

    def try_float(self) -> float | None:
        number = self.try_match(_NUMBER)
        return None if number is None else float(number)

    def end_line(self) -> None:
        """Fail unless the line ended after the last token, or the block or the text ends here."""
        if not self._crossed_line and not self.peek("}") and not self.at_end():
            self.fail("the end of the line")

    def at_end(self) -> bool:
        return self._at == len(self._text)

    def fail(self, expected: str) -> NoReturn:
        before = self._text[: self._at]
        found = "the end of the text"
        if (match := _WORD.match(self._text, self._at)) is not None:
            found = f"`{match.group()}`"
        raise IrSyntaxError(before.count("\n") + 1, self._at - before.rfind("\n"), expected, found)

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        assert match is not None
        self._crossed_line = "\n" in match.group()
        self._at = match.end()

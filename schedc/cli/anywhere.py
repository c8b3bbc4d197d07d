"""Flags of the command as a whole may stand anywhere on the line, and `--json` before its subcommand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

WHOLE = ("--quiet", "-q", "--verbose", "-v", "--no-cache")
JSON = "--json"


def arranged(group: Any, arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments with the flags of the whole first and `--json` last, and whether that is among them.

    What is the value of an option stays, as in `--prompt -v`, and so does all after `--`. `group` is typer's.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first: list[str] = []
    rest: list[str] = []
    json: list[str] = []
    for argument, is_value in _told_apart(group, arguments[:end]):
        place = rest if is_value else first if argument in WHOLE else json if argument == JSON else rest
        place.append(argument)
    return [*first, *rest, *json, *arguments[end:]], bool(json)


def _told_apart(group: Any, arguments: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Every argument, and whether it is the value of the option before it."""
    command, takes_value = group, False
    for argument in arguments:
        yield argument, takes_value
        takes_value = not takes_value and argument in _with_value(command)
        if not argument.startswith("-"):
            command = getattr(command, "commands", {}).get(argument, command)


def _with_value(command: Any) -> set[str]:
    options = (option for option in command.params if not getattr(option, "is_flag", True))
    return {name for option in options for name in (*option.opts, *option.secondary_opts) if name.startswith("-")}

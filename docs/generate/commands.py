"""The reference of the command line, from the commands' own help."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent
from typing import Any, get_args

import typer

from schedc.cli.main import app


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    command = typer.main.get_command(app)
    yield "# The command\n\nMade from `schedc --help` and that of every subcommand.\n"
    yield f"```text\n{_text(command)}\n```\n"
    yield from _subcommands(command, "schedc")


def _subcommands(group: Any, prefix: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        whole = f"{prefix} {name}"
        yield f"## {whole}\n\n```text\n{_text(command)}\n```\n"
        yield from _parameters(command)
        if hasattr(command, "commands"):
            yield from _subcommands(command, whole)


def _text(command: Any) -> str:
    return dedent(command.help or "").strip()


def _parameters(command: Any) -> Iterator[str]:
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    if shown:
        yield "| | default | |\n|---|---|---|"
        for parameter in shown:
            yield f"| `{_name(parameter)}` | {_default(parameter)} | {_cell(getattr(parameter, 'help', '') or '')} |"
        yield ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join((*parameter.opts, *parameter.secondary_opts))
    return names if parameter.is_flag else f"{names} {parameter.metavar or _type(parameter)}"


def _type(parameter: Any) -> str:
    annotation = parameter.type_descriptor.annotation
    choices = get_args(annotation)
    return "\\|".join(map(str, choices)) if choices else annotation.__name__.upper()


def _default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return _cell(shown)
    if parameter.default is None or parameter.default is False or callable(parameter.default):
        return "required" if parameter.required else ""
    return f"`{_cell(str(parameter.default))}`"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

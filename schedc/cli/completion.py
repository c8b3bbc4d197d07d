"""What the shell completes: models, files, policies, plans, targets, columns of tables, phases.

Functions for typer's `autocompletion`; nothing that a user typed wrong is an error here.
"""

import re
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import typer

from schedc.errors import SchedcError

FILES = (".yaml", ".yml", ".ir")
_PHASE = re.compile(r"^\s*phase (\S+) \{", re.MULTILINE)


def models(incomplete: str) -> list[str]:
    """Specs that come with schedc, and files and folders below what is typed."""
    from schedc.spec.load import list_models

    return [*_beginning(list_models(), incomplete), *_paths(incomplete)]


def policies(incomplete: str) -> list[str]:
    from schedc.schedule.registry import POLICIES, SEARCHES

    return _beginning((*POLICIES, *SEARCHES), incomplete)


def policy_lists(incomplete: str) -> list[str]:
    """As in `ring,double_buffer`."""
    from schedc.schedule.registry import POLICIES

    return _last_of_list(("all", *POLICIES), incomplete)


def against(incomplete: str) -> list[str]:
    return [*policies(incomplete), *models(incomplete)]


def plans(incomplete: str) -> list[str]:
    from schedc.schedule.plan_file import list_plans

    return [*_beginning(list_plans(), incomplete), *_paths(incomplete)]


def targets(incomplete: str) -> list[str]:
    from schedc.target.target import list_targets

    return _beginning([target.name for target in list_targets()], incomplete)


def column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the table that the subcommand prints."""
    return _beginning(_columns(ctx), incomplete)


def column_list(ctx: typer.Context, incomplete: str) -> list[str]:
    return _last_of_list(("all", *_columns(ctx)), incomplete)


def phases(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the folder, the program or the model that stands before, with the options that do."""
    return _beginning(_phases(ctx), incomplete)


def dumped(ctx: typer.Context, incomplete: str) -> list[str]:
    return _beginning(("all", *_phases(ctx)), incomplete)


def _columns(ctx: typer.Context) -> list[str]:
    module = import_module(f"schedc.inspect.tables.{ctx.info_name}")
    return [one.name for one in module.COLUMNS]


def _phases(ctx: typer.Context) -> list[str]:
    left = next(iter(ctx.args), "")  # where what is completed is the value of an option, arguments are not told apart
    text = ctx.params.get("model") or ctx.params.get("folder") or left
    path = Path(text) / "program.ir" if Path(text).is_dir() else Path(text)
    try:
        if path.suffix == ".ir":
            return list(dict.fromkeys(_PHASE.findall(path.read_text(encoding="utf-8"))))
        return _phases_of_model(ctx, text)
    except (SchedcError, OSError, UnicodeDecodeError):
        return []


def _phases_of_model(ctx: typer.Context, model: str) -> list[str]:
    from schedc.cli.options import ScheduleOptions
    from schedc.compiler.pricing import schedule
    from schedc.ir.program import Phase, walk
    from schedc.spec.load import load_spec

    given = {field.name: ctx.params.get(field.name) for field in fields(ScheduleOptions)}
    options = ScheduleOptions(**{name: value for name, value in given.items() if value})
    request = options.request(load_spec(model), ctx.params.get("rows"))
    made = schedule(request.spec, request.shape, request.target, request.policy, request.settings)
    return list(dict.fromkeys(op.name for op in walk(made.program.body) if isinstance(op, Phase)))


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _last_of_list(names: Iterable[str], incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in _beginning(names, last) if name not in taken]


def _paths(incomplete: str) -> list[str]:
    """Folders, specs and programs; hidden ones only if the point is typed."""
    typed = Path(incomplete or ".")
    folder, name = (typed, "") if incomplete.endswith("/") or not incomplete else (typed.parent, typed.name)
    before = incomplete[: len(incomplete) - len(name)]
    try:
        found = sorted(path for path in folder.iterdir() if path.name.startswith(name))
    except OSError:
        return []
    shown = (path for path in found if name.startswith(".") or not path.name.startswith("."))
    return [
        f"{before}{path.name}{'/' if path.is_dir() else ''}" for path in shown if path.is_dir() or path.suffix in FILES
    ]

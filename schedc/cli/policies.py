"""`schedc policies`: how transfers can be ordered."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stdout


def register(app: typer.Typer) -> None:
    app.command()(policies)


def policies(json: Json = False) -> None:
    """List the ordering policies and their settings. examples/my_policy.py shows how to write your own.

    Examples:

      schedc compile smollm2-135m --policy ring --set depth=4 --set slot_mib=1

      schedc compile smollm2-135m --policy ./my_policy.py:late_cache
    """
    from schedc.schedule.registry import DEFAULT_POLICY, POLICIES, SEARCHES, find_policy

    names = (*POLICIES, *SEARCHES)
    if json:
        print_json([_entry(name, find_policy(name)) | {"default": name == DEFAULT_POLICY} for name in names])
        return
    table = simple_table("policy", "settings", "what it does")
    for name in names:
        entry = _entry(name, find_policy(name))
        settings = " ".join(f"{key}={value:g}" for key, value in entry["settings"].items())
        table.add_row(f"{name} (default)" if name == DEFAULT_POLICY else name, settings, entry["about"])
    to_stdout().print(table)


def _entry(name: str, policy: Callable[..., Any]) -> dict[str, Any]:
    """`about`: the first line of what the policy's file says, as each policy has a file of its own."""
    about = inspect.getdoc(sys.modules[policy.__module__]) or inspect.getdoc(policy) or ""
    accepted = list(inspect.signature(policy).parameters.values())[1:]
    return {
        "name": name,
        "about": about.partition("\n")[0],
        "settings": {parameter.name: parameter.default for parameter in accepted},
    }

"""`schedc cache`: what was computed before and is kept, and how to be rid of it."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stdout
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.cache import Entry, Store

_DAY = 86_400.0


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True,
        help="Look at, or clear, what is kept of compilations by the TPU compiler and of long proofs.",
    )
    for command in (look, clear, path):
        group.command()(command)
    app.add_typer(group, name="cache")


def look(json: Json = False) -> None:
    """List what is kept: of which kernel or program, how large, and when it was last used.

    A result is found again for the same text, versions, flags and code of schedc; otherwise it is computed anew.

    Example:

      schedc cache look
    """
    store = _store()
    entries = store.entries()
    if json:
        kept = [
            {"kind": e.kind, "key": e.key, "of": e.label, "bytes": e.bytes, "used": round(e.used, 3)} for e in entries
        ]
        print_json({"folder": str(store.folder), "bytes": sum(e.bytes for e in entries), "entries": kept})
        return
    table = simple_table("kind", "of", "KiB", "last used", "key", right=("KiB",))
    for entry in entries:
        table.add_row(entry.kind, entry.label, f"{entry.bytes / 1024:,.1f}", _ago(entry.used), entry.key[:12])
    if entries:
        to_stdout().print(table)
    typer.echo(f"{_sum(entries)} in {store.folder}")


def clear(
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only this kind, as `schedc cache look` names them.")
    ] = None,
    days: Annotated[
        float | None, typer.Option("--unused-for", metavar="DAYS", help="Only what was not used for so long.", min=0)
    ] = None,
    json: Json = False,
) -> None:
    """Remove what is kept: all of it, a kind, or what was not used for some days.

    Example:

      schedc cache clear --unused-for 30
    """
    store = _store()
    kinds = {entry.kind for entry in store.entries()}
    if kind is not None and kind not in kinds:
        raise UserError(f"--kind {kind}: nothing of that kind is kept ({', '.join(sorted(kinds)) or 'nothing at all'})")
    removed = store.clear(kind, None if days is None else time.time() - days * _DAY)
    if json:
        print_json({"folder": str(store.folder), "removed": len(removed), "bytes": sum(e.bytes for e in removed)})
    else:
        typer.echo(f"removed {_sum(removed)} from {store.folder}")


def path(json: Json = False) -> None:
    """Print the folder. The variable SCHEDC_CACHE names another one; SCHEDC_NO_CACHE=1 keeps nothing.

    Example:

      schedc cache path
    """
    folder = _store().folder
    if json:
        print_json({"folder": str(folder)})
    else:
        typer.echo(folder)


def _store() -> "Store":
    from schedc.cache import active

    store = active()
    if store is None:
        raise UserError("the cache is off (--no-cache, or the variable SCHEDC_NO_CACHE)")
    return store


def _sum(entries: "list[Entry]") -> str:
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    return f"{count}, {sum(entry.bytes for entry in entries) / 2**20:,.1f} MiB"


def _ago(moment: float) -> str:
    seconds = max(0.0, time.time() - moment)
    for size, name in ((_DAY, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"

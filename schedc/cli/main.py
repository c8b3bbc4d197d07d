"""The command `schedc`: one file a subcommand. Their heavy imports are inside the functions, so that help is quick."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from errno import EDQUOT, EIO, ENOSPC
from functools import partial
from io import TextIOWrapper
from threading import Event
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from schedc import __version__
from schedc.cache import found as found_in_cache
from schedc.cache import switched_off
from schedc.cli import (
    bench,
    cache,
    calibrate,
    check,
    compile,
    diff,
    doctor,
    emit,
    explain,
    explore,
    import_config,
    inspect,
    models,
    pack,
    policies,
    profile,
    published,
    run,
    sweep,
    targets,
    verify,
)
from schedc.cli.anywhere import arranged
from schedc.cli.console import print_json, say_error, set_verbosity, to_stderr
from schedc.errors import SchedcError, UserError


class Commands(TyperGroup):
    """What is the user's to mend is shown as a message, without a traceback; with `--json` also as an object."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args, ctx.meta[_JSON] = arranged(self, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SchedcError as error:
            message = "\n".join((str(error), *getattr(error, "__notes__", ())))
            _say_json(ctx, error.kind, message, error.problems, error.details)
            say_error(message)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            _say_json(ctx, "interrupted", "interrupted")
            typer.echo("\ninterrupted" if sys.stderr.isatty() else "interrupted", err=True)
            raise typer.Exit(130) from None
        except Terminated:
            _say_json(ctx, "terminated", "terminated")
            typer.echo("terminated", err=True)
            raise
        except Exception as error:
            if hasattr(error, "format_message"):  # bad usage, which typer shows
                _say_json(ctx, "usage", error.format_message())
            raise


_JSON = "schedc.json"


def _say_json(
    ctx: Any, kind: str, message: str, problems: Sequence[str] = (), details: Mapping[str, Any] | None = None
) -> None:
    if ctx.meta[_JSON]:
        error = {"kind": kind, "message": message, "problems": list(problems or (message,))}
        print_json({**(details or {}), "error": error})


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"schedc {__version__}")
        raise typer.Exit


@app.callback()
def schedc(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Leave a line for every stage and its time.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Compute all anew, and keep nothing (see `schedc cache`).")
    ] = False,
) -> None:
    """Turn a declarative LLM spec into one Pallas TPU megakernel: scheduled, proven safe, and predicted.

    No TPU is needed to compile, check or try a kernel.

    Exit codes: 0 all is well, 1 a check failed, 2 bad usage or bad input, 130 interrupted. With --json a failure is an
    object on stdout too: its "error" has a kind, a message and the problems one by one. --quiet (-q), --verbose (-v),
    --no-cache and --json may stand anywhere on the line.
    """
    if quiet and verbose:
        raise UserError("--quiet and --verbose cannot be given together")
    set_verbosity("quiet" if quiet else "verbose" if verbose else "normal")
    ctx.with_resource(switched_off(no_cache))
    found = ctx.with_resource(found_in_cache())
    if verbose:
        ctx.call_on_close(partial(_say_found, found))


def _say_found(kinds: Sequence[str]) -> None:
    if kinds:
        to_stderr().print(f"from the cache: {', '.join(dict.fromkeys(kinds))}")


COMMANDS = (
    compile,
    profile,
    check,
    emit,
    run,
    verify,
    pack,
    inspect,
    diff,
    explain,
    import_config,
    models,
    targets,
    policies,
    published,
    sweep,
    explore,
    calibrate,
    bench,
    cache,
    doctor,
)
for module in COMMANDS:
    module.register(app)


TERMINATED = 128 + signal.SIGTERM
AGAIN_SECONDS = 5.0
"""After so long a command that was told to end, and has not, is told again."""


class Terminated(BaseException):
    """The process was told to end. No SystemExit: that of a user's policy is reported as the policy's failure."""


def _unwind_when_terminated() -> Event:
    """So that drafts are removed, and processes that were started end. What was forked from this one ends at once.

    The event is set when it was told to end: a callback from C swallows the exception, and fails later by another, or
    not at all, so that it is raised again until the command has ended.
    """
    own, told = os.getpid(), Event()

    def terminate(number: int, frame: object) -> None:
        if os.getpid() != own:
            os._exit(TERMINATED)
        told.set()
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, terminate)
    return told


def _writable_in_any_encoding() -> None:
    """What the encoding of a terminal or a pipe does not have is shown as a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    told = _unwind_when_terminated()
    _writable_in_any_encoding()
    try:
        app(prog_name="schedc")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as in `schedc inspect ir … | head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if told.is_set():
            sys.exit(TERMINATED)
        if error.errno not in (ENOSPC, EDQUOT, EIO):
            raise
        say_error(f"cannot write: {error.strerror}")
        os._exit(1)  # What is left in stdout cannot be written either.
    except Terminated:
        sys.exit(TERMINATED)
    except Exception:
        if not told.is_set():
            raise
        sys.exit(TERMINATED)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()

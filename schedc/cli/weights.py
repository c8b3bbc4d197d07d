"""Finding weights and tokenizers for the subcommands that need them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from schedc.cli.console import shows_progress, to_stderr

if TYPE_CHECKING:
    from schedc.spec.model import ModelSpec
    from schedc.weights.source import WeightSource
    from schedc.weights.tokenizer import Tokenizer

WeightsFile = Annotated[
    Path | None,
    typer.Option(
        "--weights-file",
        help="GGUF or safetensors weights: a file, or a folder of safetensors.",
        show_default="fetched, if a package has them",
    ),
]


Rounding = Annotated[
    Literal["nearest"] | None,
    typer.Option(
        "--round",
        help="Round floating-point weights to the quantised formats of the spec, each by its own rule.",
        show_default="not rounded: refused where a format wants it",
    ),
]


def opened(path: Path, spec: "ModelSpec", rounding: str | None) -> "WeightSource":
    """The weights of a file, checked against the spec; what of it is not read is said on stderr.

    Raises UserError as `open_weights` does.
    """
    from schedc.weights.open import open_weights
    from schedc.weights.rounded import Rounded

    source = open_weights(path, spec, lambda line: typer.echo(f"note: {line}", err=True))
    return source if rounding is None else Rounded(source, spec)


def weights_path(spec: "ModelSpec", given: Path | None) -> Path:
    """The given file, else the fetched one. Raises UserError if no package has the model's weights."""
    from schedc.weights.fetch import fetch_weights

    return given if given is not None else fetch_weights(spec.name, lambda line: typer.echo(line, err=True))


def find_tokenizer(weights: Path, given: Path | None) -> "Tokenizer":
    """The given one, else that of a GGUF file or of the weights' folder."""
    from schedc.weights.tokenizer import load_tokenizer

    if given is not None:
        return load_tokenizer(given)
    if weights.suffix == ".gguf" or weights.is_dir():
        return load_tokenizer(weights)
    return load_tokenizer(weights.parent)


@contextmanager
def byte_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for calls with (bytes done, bytes in all); it appears at the first call."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = to_stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (console.is_terminal and shows_progress()),
    ) as bars:
        task = bars.add_task(what, total=None, visible=False)

        def show(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total, visible=True)

        yield show

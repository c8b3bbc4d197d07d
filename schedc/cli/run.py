"""`schedc run`: generate text with a kernel."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Json, Stages, print_json
from schedc.cli.options import ModelOrFolder, ScheduleOptions, compiled_folder, with_schedule_options
from schedc.cli.weights import Rounding, WeightsFile, byte_progress, find_tokenizer, opened, weights_path
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.run.runnable import Runnable
    from schedc.weights.tokenizer import TextStream


DRAFTED_ROWS = 8
"""Tokens of one sequence that a step takes, if the model is compiled for this run."""


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(run))


def run(
    model: ModelOrFolder,
    options: ScheduleOptions,
    prompt: Annotated[list[str], typer.Option("--prompt", "-p", help="Text to go on with; repeated: one row each.")],
    max_tokens: Annotated[int, typer.Option("--max-tokens", "-n", help="Tokens to generate.", min=1)] = 16,
    weights_file: WeightsFile = None,
    rounding: Rounding = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", help="A tokenizer.json or its folder.", show_default="that of the weights"),
    ] = None,
    steps_per_call: Annotated[
        int,
        typer.Option(
            "--steps-per-call", help="Decode steps a call of the kernel; text comes as many tokens at once.", min=1
        ),
    ] = 1,
    json: Json = False,
) -> None:
    """Generate text: the prompt goes through the plain-JAX reference, every new token through the kernel.

    The kernel runs on the TPU of this machine if there is one; else it is interpreted on the CPU, which takes seconds
    a token. Greedy; the prompt is taken as it is, without a chat template. With --rows-are tokens a step verifies
    tokens that are guessed from repetitions in the text.

    Examples:

      schedc run smollm2-135m --prompt "The capital of France is"

      schedc run out/smollm2-135m -p "Once upon a time" -n 32
    """
    from schedc.run.platform import require_devices, use_best

    stages = Stages()
    with stages.stage("compile"):
        runnable = _runnable(model, options, len(prompt))
    if runnable.shape.rows_are == "tokens":
        _refuse_beside_drafts(prompt, steps_per_call)
    spec, devices = runnable.spec, runnable.shape.devices
    use_best(devices)
    require_devices(devices)
    from schedc.run.generate import check_prompts, generate, prefill
    from schedc.run.speculate import generate_drafted

    with stages.stage("read the weights"):
        from schedc.reference.reference import Reference

        path = weights_path(spec, weights_file)
        source = opened(path, spec, rounding)
        words = find_tokenizer(path, tokenizer)
    prompts = [words.encode(text) for text in prompt]
    check_prompts(prompts, runnable.shape.sequences, runnable.shape.context)
    with byte_progress(f"packing {spec.name}") as progress:
        decoder, platform = runnable.decoder(source, progress)
    with stages.stage("prefill"):
        prefill(decoder, Reference(spec, source), prompts)

    eos = {*spec.eos_token_ids, *words.eos_token_ids}
    steps: Iterator[Sequence[int | None]] = generate(decoder, prompts, max_tokens, eos, steps_per_call)
    if runnable.shape.rows_are == "tokens":
        drafted = generate_drafted(decoder, prompts[0], max_tokens, eos)
        steps = ([token] for new in drafted for token in new)
    times = [perf_counter()]
    with stages.stage("first step, which compiles the kernel"):
        first = next(steps)
    texts = _Texts([words.stream() for _ in prompts], eos, _Printer(prompt, quiet=json))
    for new in chain([first], steps):
        times.append(perf_counter())
        texts.add(new)
    texts.end()
    _report(texts.tokens, texts.texts, prompts, times, steps_per_call, platform, json)


def _refuse_beside_drafts(prompts: Sequence[str], steps_per_call: int) -> None:
    if len(prompts) > 1:
        raise UserError(f"--rows-are tokens: the rows are tokens of one sequence, and there are {len(prompts)} prompts")
    if steps_per_call > 1:
        raise UserError(
            f"--rows-are tokens: what a step accepts is known behind it, so not {steps_per_call} steps a call"
        )


def _runnable(model: str, options: ScheduleOptions, rows: int) -> "Runnable":
    from schedc.compiler.output import KERNEL
    from schedc.compiler.pipeline import compile_model
    from schedc.run.runnable import Runnable
    from schedc.spec.load import load_spec

    folder = compiled_folder(model, options)
    if folder is not None:
        return Runnable(
            folder.read(KERNEL), folder.spec, folder.layouts, folder.shape, int(folder.manifest["kv_tokens"])
        )
    if rows > 16:
        raise UserError(f"{rows} prompts are more than the 16 rows a kernel may have")
    rows = DRAFTED_ROWS if options.rows_are == "tokens" else rows
    compiled = compile_model(options.request(load_spec(model), rows))
    made, request = compiled.schedule, compiled.request
    return Runnable(compiled.kernel.source, request.spec, made.layouts, request.shape, made.plan.kv_tokens)


class _Texts:
    """The tokens and the text of every row, shown as they are made."""

    def __init__(self, streams: "Sequence[TextStream]", eos: Collection[int], show: "_Printer") -> None:
        self.streams, self.eos, self.show = streams, eos, show
        self.tokens: list[list[int]] = [[] for _ in streams]
        self.texts = ["" for _ in streams]

    def add(self, new: Sequence[int | None]) -> None:
        """The next token of every row; None for those that have ended."""
        for row, token in enumerate(new):
            if token is not None:
                self.tokens[row].append(token)
                self._add(row, "" if token in self.eos else self.streams[row].push(token))

    def end(self) -> None:
        for row, stream in enumerate(self.streams):
            self._add(row, stream.finish())
        self.show.end()

    def _add(self, row: int, text: str) -> None:
        self.texts[row] += text
        self.show.add(row, text)


class _Printer:
    """Text as it is made: one prompt goes on in its line, several are printed when their turn has come.

    Rows are generated together but text can only grow at the end, so row n + 1 appears when row n is complete.
    """

    def __init__(self, prompts: Sequence[str], quiet: bool) -> None:
        self._prompts, self._quiet = prompts, quiet
        self._kept = ["" for _ in prompts]
        if not quiet:
            typer.secho(prompts[0], dim=True, nl=False)

    def add(self, row: int, text: str) -> None:
        if row == 0 and not self._quiet:
            typer.echo(text, nl=False)
        else:
            self._kept[row] += text

    def end(self) -> None:
        if self._quiet:
            return
        typer.echo()
        for prompt, text in list(zip(self._prompts, self._kept, strict=True))[1:]:
            typer.secho(prompt, dim=True, nl=False)
            typer.echo(text)


def _report(
    tokens: Sequence[Sequence[int]],
    texts: Sequence[str],
    prompts: Sequence[Sequence[int]],
    times: Sequence[float],
    steps_per_call: int,
    platform: str,
    json: bool,
) -> None:
    """The first call, which compiles the kernel, is not in the rate, unless it is the only one."""
    count = sum(map(len, tokens))
    skipped = steps_per_call if len(times) - 1 > steps_per_call else 0
    first = sum(len(made[:skipped]) for made in tokens)
    seconds = times[-1] - times[skipped]
    rate = (count - first) / seconds if seconds > 0 else 0.0
    result: Mapping[str, Any] = {
        "rows": [
            {"prompt_ids": list(given), "ids": list(made), "text": text}
            for given, made, text in zip(prompts, tokens, texts, strict=True)
        ],
        "tokens_per_second": round(rate, 3),
        "first_step_seconds": round(times[1] - times[0], 3),
        "platform": platform,
    }
    if json:
        print_json(result)
        return
    call = "step" if steps_per_call == 1 else f"call of {steps_per_call} steps"
    line = f"{count} tokens, {rate:.3g} tokens/s ({platform}; the first {call} took {times[1] - times[0]:.1f} s)"
    typer.secho(line, dim=True, err=True)

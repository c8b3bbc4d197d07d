"""A model over batches, contexts, topologies and acceptance lengths: predicted steps, rates and prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from math import ceil
from typing import Any

from schedc.compiler.pipeline import Request, build
from schedc.cost.inputs import default_inputs
from schedc.cost.machine import Machine
from schedc.cost.prefill import prefill
from schedc.cost.report import CostReport, predict
from schedc.cost.routing import Load
from schedc.cost.serving import serving
from schedc.errors import SchedcError, UserError
from schedc.ir.program import Program


@dataclass(frozen=True)
class Axes:
    """What is tried, each with each."""

    batches: Sequence[int]
    contexts: Sequence[int | None]
    topologies: Sequence[str | None]
    accepts: Sequence[float] = (1.0,)


@dataclass(frozen=True)
class Economics:
    """`filled`: share of the context that a token sees, and that the prompt has. `price`: dollars a chip-hour."""

    filled: float = 0.5
    draft_us: float = 0.0
    steps_per_call: int = 1
    price: float | None = None


@dataclass(frozen=True)
class Point:
    """One combination. Times in µs; `refused` says why there is none, and then there are no numbers."""

    batch: int
    context: int | None
    target: str
    accept: float
    devices: int | None = None
    chips: int | None = None
    position: int | None = None
    kernel_us: float | None = None
    step_us: float | None = None
    """With the call's share and the draft."""
    binding: str | None = None
    step_over_bound: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_sequence: float | None = None
    tokens_per_s_per_chip: float | None = None
    dollars_per_million_tokens: float | None = None
    prefill_estimate_us: float | None = None
    prefill_binding: str | None = None
    first_token_estimate_us: float | None = None
    """Of the prompt and one step."""
    priced_by: str | None = None
    refused: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


COLUMNS = tuple(field.name for field in fields(Point))

Asked = Callable[[int, int | None, str | None], Request]
"""The request for a batch, a context and a topology. Raises SchedcError for what cannot be."""


def sweep(
    asked: Asked,
    axes: Axes,
    economics: Economics,
    machine: Callable[[Request], Machine],
    load: Load,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Point]:
    """Points in the order of the axes, the last fastest. Steps are scheduled and allocated, not proven."""
    combinations = list(product(axes.topologies, axes.contexts, axes.batches))
    for number, (topology, context, batch) in enumerate(combinations, 1):
        say(f"{number} of {len(combinations)}")
        try:
            request = asked(batch, context, topology)
            _, program = build(request)
            position = max(0, min(request.shape.context - 1, round(economics.filled * request.shape.context)))
            inputs = {"position": default_inputs(program, position)["position"]}
            core = machine(request)
            cost = predict(program, request.target, inputs, core, load, analyse=False)
        except SchedcError as error:
            reason = " ".join(str(error).split())
            for accept in axes.accepts:
                yield Point(batch, context, topology or "", accept, refused=reason)
            continue
        for accept in axes.accepts:
            yield _point(request, program, position, cost, core, accept, economics)


def _point(
    request: Request,
    program: Program,
    position: int,
    cost: CostReport,
    machine: Machine,
    accept: float,
    economics: Economics,
) -> Point:
    shape, target = request.shape, request.target
    known = Point(shape.rows, shape.context, target.name, accept, shape.devices)
    try:
        refuse_acceptance(accept, shape.rows, shape.rows_are)
    except UserError as error:
        return Point(shape.rows, shape.context, target.name, accept, shape.devices, refused=str(error))
    chips = ceil(shape.devices / target.chip.devices_per_chip)
    call_us, draft_us = cost.dispatch_us / economics.steps_per_call, economics.draft_us if accept > 1 else 0.0
    rates = serving(cost.step_us, shape.sequences, chips, accept, draft_us, call_us, economics.price)
    reading = prefill(request.spec, program, target, position + 1, shape.sequences, shape.context, machine.clock_ghz)
    return Point(
        **{name: getattr(known, name) for name in ("batch", "context", "target", "accept", "devices")},
        chips=chips,
        position=position,
        kernel_us=cost.step_us,
        binding=cost.binding,
        step_over_bound=cost.bounds[cost.binding].step_over_bound,
        **asdict(rates),
        prefill_estimate_us=round(reading.time_us, 1),
        prefill_binding=reading.binding,
        first_token_estimate_us=round(reading.time_us + cost.step_us + cost.dispatch_us, 1),
        priced_by=cost.priced_by,
    )


def refuse_acceptance(accept: float, rows: int, rows_are: str) -> None:
    """Raises UserError for more tokens a step than it can give."""
    if accept < 1:
        raise UserError(f"--accept {accept:g}: a step gives at least one token; use 1 or more")
    if accept > 1 and rows_are == "sequences":
        raise UserError(f"--accept {accept:g}: a step of sequences gives each one token; give --rows-are tokens")
    if accept > rows:
        raise UserError(f"--accept {accept:g}: a step that verifies {rows} tokens gives at most {rows}; raise --batch")

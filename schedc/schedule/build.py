"""From a spec, a step shape and a target to a program with addresses: lower, ask the policy, assemble, allocate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf

from schedc.errors import UserError
from schedc.ir.allocate import fits
from schedc.ir.expr import Const
from schedc.ir.program import BLOCKS, ROW_BYTES, Attribute, Loop, Op, Program, Start
from schedc.lower.caches.shape import chunk_tokens
from schedc.lower.graph import Each, Grain, Phase, Segment, StepGraph, StepShape, round_up
from schedc.lower.step import StepLowering
from schedc.schedule.assemble import Assembly
from schedc.schedule.depends import dependences, order_faults
from schedc.schedule.lazy import Lazy
from schedc.schedule.plan import (
    PhaseInfo,
    Plan,
    PrefetchInfo,
    Problem,
    SegmentInfo,
    SelectionInfo,
    StreamInfo,
    TransferCost,
)
from schedc.schedule.plan_faults import check_plan
from schedc.schedule.policies.ring import ring
from schedc.schedule.products import refuse_unused_forms, with_products
from schedc.schedule.registry import DEFAULT_POLICY, run_policy
from schedc.schedule.reorder import reordered
from schedc.spec.model import Half, ModelSpec
from schedc.target.target import Target
from schedc.weights.layout import Layout, WordDtype

KV_TOKENS = (512, 256, 128, 64, 32, 16)
"""Tile sizes of the cache that a plan may choose from, in tokens."""

SPILL_RESERVE_BYTES = 3 * 2**20
"""VMEM left to the compiler: register spills of published hand-written kernels reach 2.7 MiB."""

SPILL_RESERVE_SHARE = 0.1
"""On a chip with little VMEM the reserve is no more than this share of it."""


@dataclass(frozen=True)
class Schedule:
    """A step graph, the plan for it, and the program that follows, before addresses are decided."""

    graph: StepGraph
    plan: Plan
    program: Program
    layouts: tuple[Layout, ...]


@dataclass(frozen=True)
class Price:
    """Of a program: the predicted time of a step, inf if it waits for ever; by phase, over the step, the time of the
    core (`phase_ns`) and that in which it is blocked (`stall_ns`)."""

    step_ns: float
    phase_ns: Mapping[str, float]
    stall_ns: Mapping[str, float]


Pricing = Callable[[Program], Price]
"""What a program without addresses is predicted to take."""


def capacity_rows(target: Target) -> int:
    """Rows of VMEM a program may take."""
    capability = target.capability
    usable = capability.vmem_usable_bytes - capability.vmem_internal_bytes
    reserve = min(SPILL_RESERVE_BYTES, int(SPILL_RESERVE_SHARE * capability.vmem_usable_bytes))
    return max(0, (usable - reserve) // ROW_BYTES)


def problem_of(lowering: StepLowering, target: Target, pricing: Pricing | None = None) -> Problem:
    """What a policy decides about; without `pricing` it is not told what anything takes."""
    streams = lowering.streams()
    half_of = _halves(lowering)

    def graph_at(tokens: int, slots: int = 2) -> StepGraph:
        return lowering.graph(Grain({stream.name: 1 for stream in streams}, tokens, kv_slots=slots))

    def kv_rows(tokens: int, slots: int) -> int:
        buffers = graph_at(tokens, slots).declarations.buffers
        return sum(b.rows * b.slots for b in buffers if b.name.startswith(("kv_new", "kv_old")))

    possible = kv_tokens(lowering)
    graph = graph_at(possible[-1])
    capacity = capacity_rows(target)

    def of_plan(plan: Plan) -> Program:
        return program_of(lowering, plan, target)

    @cache
    def price() -> Price:
        return Price(0.0, {}, {}) if pricing is None else pricing(of_plan(ring(problem)))

    def a_trip(of_step: Mapping[str, float]) -> dict[str, float]:
        return {p.name: of_step.get(p.name, 0.0) / s.trips for s in problem.segments for p in s.phases}

    def evaluate(plan: Plan) -> float:
        assert pricing is not None
        faults = check_plan(problem, plan)
        if faults:
            raise UserError("\n".join(["a plan that cannot be built:", *(f"  {fault}" for fault in faults)]))
        program = of_plan(plan)
        return pricing(program).step_ns if fits(program, capacity) else inf

    @cache
    def sited(collectives: tuple[tuple[str, str], ...], wires: tuple[tuple[str, WordDtype], ...]) -> Problem:
        return problem_of(lowering.at_sites(dict(collectives), dict(wires)), target, pricing)

    cost = target.cost
    problem = Problem(
        segments=tuple(_segment(segment) for segment in graph.segments),
        streams=tuple(StreamInfo(s.name, s.unit_rows, s.units, half_of.get(s.name)) for s in streams),
        prefetches=tuple(_prefetches(graph)),
        capacity_rows=capacity,
        kv_tokens=possible,
        kv_rows=kv_rows,
        selections=tuple(
            SelectionInfo(each.name, each.selection.members, each.selection.most, each.selection.known)
            for each in graph.selections()
        ),
        sites=lowering.sum_sites(),
        depends=Lazy(lambda: dependences(graph)),
        durations=Lazy(lambda: a_trip(price().phase_ns)),
        stalls=Lazy(lambda: a_trip(price().stall_ns)),
        transfer=TransferCost(ROW_BYTES / cost.hbm_stream_gb_s, cost.dma_descriptor_ns, cost.dma_hbm_to_vmem_ns),
        fits=lambda plan: fits(of_plan(plan), capacity),
        evaluate=None if pricing is None else evaluate,
        lowering=lowering,
        target=target,
        at_sites=lambda collectives, wires: sited(tuple(sorted(collectives.items())), tuple(sorted(wires.items()))),
    )
    return problem


def _rows(ops: tuple[Op, ...]) -> int:
    """What operations start to transfer, all of them; a loop of which the trips are not known once."""
    total = 0
    for op in ops:
        if isinstance(op, Start):
            total += op.source.rows
        elif isinstance(op, BLOCKS):
            trips = op.trips.value if isinstance(op, Loop) and isinstance(op.trips, Const) else 1
            total += trips * _rows(op.body)
    return total


def _halves(lowering: StepLowering) -> dict[str, Half]:
    """Matrices, and vectors of experts, by the half of the layer whose phases use them."""
    blocks = [block for run in lowering.blocks for block in run]
    mixers: dict[str, Half] = {stream.name: "mixer" for block in blocks for stream in block.mixer.matrices()}
    return mixers | {stream.name: "feed_forward" for block in blocks for stream in block.feed_forward.matrices()}


def kv_tokens(lowering: StepLowering) -> tuple[int, ...]:
    """Tiles of the cache that a plan may choose from, largest first: whole chunks, with room for the tokens of a step;
    of a paged cache its page."""
    kv = lowering.spec.kv
    if kv.page_tokens is not None:
        return (kv.page_tokens,)
    chunk = chunk_tokens(kv.dtype)
    whole = [tokens for tokens in KV_TOKENS if tokens % chunk == 0 and tokens >= lowering.shape.sequence_rows]
    longest = round_up(lowering.shape.context, chunk)
    return tuple(tokens for tokens in whole if tokens <= max(longest, whole[-1]))


def _segment(segment: Segment) -> SegmentInfo:
    return SegmentInfo(segment.name, segment.trips, tuple(i for phase in segment.phases for i in _infos(phase)))


def _prefetches(graph: StepGraph) -> Iterator[PrefetchInfo]:
    """What is issued at the start of some phase: transfers outside of the streams, then the first tiles of members."""
    for segment in graph.segments:
        for p in segment.prefetches:
            yield PrefetchInfo(p.name, p.earliest, p.latest, _rows(p.ops(Const(0))))
    for each in graph.selections():
        yield PrefetchInfo(each.name, each.selection.known, each.name)


def _infos(phase: Phase | Each) -> Iterator[PhaseInfo]:
    """A phase; of a selection its beginning, then the phases that its members repeat."""
    if isinstance(phase, Phase):
        yield PhaseInfo(phase.name, phase.stream, phase.vectors)
        return
    yield PhaseInfo(phase.name)
    for inner in phase.phases:
        yield PhaseInfo(inner.name, inner.stream, inner.vectors, each=phase.name)


def schedule(
    spec: ModelSpec,
    shape: StepShape,
    target: Target,
    policy: str = DEFAULT_POLICY,
    settings: Mapping[str, int | float] | None = None,
    pricing: Pricing | None = None,
) -> Schedule:
    """Raises SpecError for what cannot be lowered, UserError for an unusable policy or plan."""
    lowering = StepLowering(spec, shape)
    plan = run_policy(policy, problem_of(lowering, target, pricing), dict(settings or {}))
    attributes: dict[str, Attribute] = {
        "model": spec.name,
        "target": target.name,
        "policy": policy,
        "rows": shape.rows,
        "context": shape.context,
        "weights": spec.quantization.weights,
        "kv": spec.kv.dtype,
    }
    if shape.rows_are != "sequences":
        attributes["rows_are"] = shape.rows_are
    assembly, program = _assembled(lowering, plan, target, tuple(attributes.items()))
    refuse_unused_forms(program, shape)
    return Schedule(assembly.graph, plan, program, assembly.layouts())


def program_of(lowering: StepLowering, plan: Plan, target: Target) -> Program:
    """The program of a plan that `check_plan` accepts, without addresses. Raises UserError as `graph_of` does."""
    return _assembled(lowering, plan, target, ())[1]


def _assembled(
    lowering: StepLowering, plan: Plan, target: Target, attributes: tuple[tuple[str, Attribute], ...]
) -> tuple[Assembly, Program]:
    assembly = Assembly(graph_of(lowering, plan), plan, kernel_name(lowering.spec.name), attributes)
    return assembly, with_products(assembly.program(), lowering.shape, target)


def graph_of(lowering: StepLowering, plan: Plan) -> StepGraph:
    """The step graph at the grain and in the order of a plan.

    Raises UserError for an order that is not legal for the phases that there are only at the plan's own tiles and sums.
    """
    lowering = lowering.at_sites(plan.collectives, plan.wires)
    lowered = lowering.graph(plan.grain)
    graph, order = reordered(lowered, plan.order), {}
    for segment in graph.segments:
        phases = tuple(phase.name for phase in segment.phases)
        if set(phases) != set(plan.order.get(segment.name, phases)):
            order[segment.name] = phases
    if order:
        faults = order_faults(dependences(lowered), order)
        if faults:
            raise UserError("\n".join(["the plan cannot be built:", *(f"  {fault}" for fault in faults)]))
    return graph


def kernel_name(model: str) -> str:
    """A Python identifier for the kernel of a model."""
    text = "".join(c if c.isalnum() else "_" for c in model).strip("_")
    return f"{text}_decode" if text[:1].isalpha() else f"m_{text}_decode"

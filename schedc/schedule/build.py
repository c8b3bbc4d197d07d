"""From a spec, a step shape and a target to a program with addresses: lower, ask the policy, assemble, allocate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schedc.errors import UserError
from schedc.ir.program import ROW_BYTES, Attribute, Program
from schedc.lower.caches.shape import chunk_tokens
from schedc.lower.graph import Each, Grain, Phase, StepGraph, StepShape, round_up
from schedc.lower.step import StepLowering
from schedc.schedule.assemble import Assembly
from schedc.schedule.plan import PhaseInfo, Plan, PrefetchInfo, Problem, SegmentInfo, SelectionInfo, StreamInfo
from schedc.schedule.products import refuse_unused_forms, with_products
from schedc.schedule.registry import DEFAULT_POLICY, run_policy
from schedc.spec.model import ModelSpec
from schedc.target.target import Target
from schedc.weights.layout import Layout

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


def capacity_rows(target: Target) -> int:
    """Rows of VMEM a program may take."""
    capability = target.capability
    usable = capability.vmem_usable_bytes - capability.vmem_internal_bytes
    reserve = min(SPILL_RESERVE_BYTES, int(SPILL_RESERVE_SHARE * capability.vmem_usable_bytes))
    return max(0, (usable - reserve) // ROW_BYTES)


def problem_of(lowering: StepLowering, target: Target) -> Problem:
    """What a policy decides about."""
    streams = lowering.streams()

    def graph_at(tokens: int) -> StepGraph:
        return lowering.graph(Grain({stream.name: 1 for stream in streams}, tokens))

    def kv_rows(tokens: int) -> int:
        buffers = graph_at(tokens).declarations.buffers
        return sum(b.rows * b.slots for b in buffers if b.name.startswith(("kv_new", "kv_old")))

    possible = kv_tokens(lowering)
    graph = graph_at(possible[-1])
    return Problem(
        segments=tuple(
            SegmentInfo(
                segment.name,
                segment.trips,
                tuple(info for phase in segment.phases for info in _infos(phase)),
            )
            for segment in graph.segments
        ),
        streams=tuple(StreamInfo(stream.name, stream.unit_rows, stream.units) for stream in streams),
        prefetches=tuple(
            PrefetchInfo(p.name, p.earliest, p.latest) for segment in graph.segments for p in segment.prefetches
        )
        + tuple(PrefetchInfo(each.name, each.selection.known, each.name) for each in graph.selections()),
        capacity_rows=capacity_rows(target),
        kv_tokens=possible,
        kv_rows=kv_rows,
        selections=tuple(
            SelectionInfo(each.name, each.selection.members, each.selection.most, each.selection.known)
            for each in graph.selections()
        ),
    )


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
) -> Schedule:
    """Raises SpecError for what cannot be lowered, UserError for an unusable policy or plan."""
    lowering = StepLowering(spec, shape)
    plan = run_policy(policy, problem_of(lowering, target), dict(settings or {}))
    _require_semaphores(policy, plan, target)
    graph = lowering.graph(Grain(plan.tile_units, plan.kv_tokens, plan.orders, plan.sums))
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
    assembly = Assembly(graph, plan, kernel_name(spec.name), tuple(attributes.items()))
    program = with_products(assembly.program(), shape, target)
    refuse_unused_forms(program, shape)
    return Schedule(graph, plan, program, assembly.layouts())


def _require_semaphores(policy: str, plan: Plan, target: Target) -> None:
    """Raises UserError before a program is made whose size grows with slots that cannot be."""
    slots, most = sum(ring.slots for ring in plan.rings), target.capability.semaphores
    if slots > most:
        rings = ", ".join(f"{ring.name} {ring.slots}" for ring in plan.rings)
        raise UserError(
            f"policy {policy}: rings of {slots} slots in all ({rings}) need a semaphore a slot, and "
            f"{target.chip.name} has {most}; use fewer slots"
        )


def kernel_name(model: str) -> str:
    """A Python identifier for the kernel of a model."""
    text = "".join(c if c.isalnum() else "_" for c in model).strip("_")
    return f"{text}_decode" if text[:1].isalpha() else f"m_{text}_decode"

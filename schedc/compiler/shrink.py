"""A small model with the schedule of a large one: what the interpreter, far too slow for the large one, can run.

Kinds and features of every layer, the pattern of layers, the size of a head and its queries a kv head stay. Widths,
trips, context and ring depths are made as small as they can be with the same nesting of loops, starts and waits. The
policy is not asked again: its plan for the large model is kept, with fewer and smaller tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, product
from math import ceil
from typing import Any

from schedc.compiler.pipeline import Request
from schedc.compiler.pricing import schedule
from schedc.compiler.skeleton import differences
from schedc.compiler.small_blocks import small_block
from schedc.ir.program import Attribute, Program
from schedc.lower.caches.shape import chunk_tokens
from schedc.lower.caches.stream import rows_at_once
from schedc.lower.graph import LANES, StepShape, Stream
from schedc.lower.mixers.delta_rule import SEQUENCES_AT_ONCE, head_groups
from schedc.lower.mixers.latent_projections import latent_chains
from schedc.lower.step import StepLowering
from schedc.placement.heads import latent_split, split_of
from schedc.placement.split import Split
from schedc.placement.widths import dense_split
from schedc.schedule.assemble import Assembly
from schedc.schedule.build import KV_TOKENS, Schedule, graph_of, kernel_name, problem_of
from schedc.schedule.flow import ring_faults
from schedc.schedule.plan import Plan, Ring
from schedc.schedule.products import with_products
from schedc.spec.model import ModelSpec
from schedc.spec.residuals.block_attention import BlockAttentionResidual
from schedc.spec.storage import FAMILIES, Quantization

TRIPS = 3
"""Enough for a first, a steady and a last one."""
CACHE_TILES = 4
"""The newest token's tile and up to three older ones."""
TOP_K = 4
"""Experts that a row chooses, at most: one that is used, and three on their way."""


@dataclass(frozen=True)
class Shrunk:
    """A small model and its schedule. `differences`: where its shape is not that of the large one, as a diff."""

    spec: ModelSpec
    shape: StepShape
    schedule: Schedule
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Cut:
    """Tiles that a weight is cut into, and whether the last of them is not full."""

    tiles: int
    partial: bool

    def units(self, units: int) -> int | None:
        """Units a tile that cut `units` so."""
        return next((u for u in range(1, units + 1) if Cut.of(units, u) == self), None)

    @staticmethod
    def of(units: int, tile_units: int) -> Cut:
        return Cut(ceil(units / tile_units), units % tile_units != 0)


@dataclass(frozen=True)
class Caps:
    """How much of the large schedule is kept: at most so many tiles a weight, tiles ahead in a ring, trips a run."""

    tiles: int
    ahead: int
    trips: int


def shrink(request: Request, number_format: str | None = None) -> Shrunk:
    """The smallest model found with the shape of `request`'s schedule; the one that differs least if there is none.

    With `number_format`, such as f32, weights and cache have that format instead of their own. Raises what scheduling
    the large model raises.
    """
    full = schedule(request.spec, request.shape, request.target, request.policy, request.settings)
    best: Shrunk | None = None
    for caps in _caps(full.plan):
        found = _shrunk(request, full, caps, number_format)
        if best is None or len(found.differences) < len(best.differences):
            best = found
        if not found.differences:
            break
    assert best is not None
    return best


def _caps(plan: Plan) -> Iterator[Caps]:
    """From small to large."""
    deepest = max(ring.ahead for ring in plan.rings)
    for trips in (TRIPS, TRIPS + 1, TRIPS + 3):
        for ahead in sorted({min(deepest, ahead) for ahead in (3, 4, 6, 8, deepest)}):
            for tiles in sorted({3, max(2, ahead + 1), max(2, ahead + 2)}):
                yield Caps(tiles, ahead, trips)


def _shrunk(request: Request, full: Schedule, caps: Caps, number_format: str | None) -> Shrunk:
    cuts = {
        stream.name: _capped(Cut.of(stream.units, full.plan.tile_units[stream.name]), caps.tiles)
        for stream in full.graph.streams
    }
    dtype = number_format or request.spec.kv.dtype
    kv_tokens = _kv_tokens(full.plan.kv_tokens, request.spec.kv.dtype, dtype, request.shape)
    fewest = CACHE_TILES + (2 if request.spec.kv.window == "ring" else 0)
    context = _context(request.shape.context, full.plan.kv_tokens, kv_tokens, max(fewest, full.plan.kv_slots + 2))
    taps = _taps(request.spec, request.shape.taps, caps.trips)
    # One more than there are slots for, and in a ring tiles that take the place of others.
    shape = replace(request.shape, context=context, logits=True, pages=0, taps=taps)
    spec = _small_spec(request, full, cuts, caps, kv_tokens, shape, number_format)
    lowering = StepLowering(spec, shape)
    tile_units = {stream.name: _tile_units(stream, cuts[stream.name]) for stream in lowering.streams()}
    rings = tuple(_small_ring(ring, caps.ahead) for ring in full.plan.rings)
    plan = replace(full.plan, rings=rings, tile_units=tile_units, kv_tokens=kv_tokens)
    if plan.deferred and ring_faults(problem_of(lowering, request.target), plan):
        plan = replace(plan, deferred={})
    graph = graph_of(lowering, plan)
    attributes: dict[str, Attribute] = {
        "model": spec.name,
        "policy": request.policy,
        "rows": shape.rows,
        "context": shape.context,
    }
    if shape.rows_are != "sequences":
        attributes["rows_are"] = shape.rows_are
    assembly = Assembly(graph, plan, kernel_name(spec.name), tuple(attributes.items()))
    made = Schedule(graph, plan, with_products(assembly.program(), shape, request.target), assembly.layouts())
    return Shrunk(spec, shape, made, differences(_with_logits(request, full), made.program))


def _with_logits(request: Request, full: Schedule) -> Program:
    """The program that is compared: a small one always writes its logits, to be checked."""
    if request.shape.logits:
        return full.program
    graph = graph_of(StepLowering(request.spec, replace(request.shape, logits=True)), full.plan)
    made = Assembly(graph, full.plan, full.program.name, full.program.attributes).program()
    return with_products(made, request.shape, request.target)


def _capped(cut: Cut, most: int) -> Cut:
    return Cut(min(cut.tiles, most), cut.partial)


def _tile_units(stream: Stream, cut: Cut) -> int:
    """Units a tile: cut as wished, or into as many tiles at least."""
    return cut.units(stream.units) or max(1, stream.units // cut.tiles)


def _small_ring(ring: Ring, most: int) -> Ring:
    ahead = min(ring.ahead, most)
    return replace(ring, ahead=ahead, slots=max(1, ahead + ring.slots - ring.ahead))


def _taps(spec: ModelSpec, taps: tuple[int, ...], trips: int) -> tuple[int, ...]:
    """The layers at the same places, in the last trip where theirs is cut off."""
    kept = [min(run.repeat, trips) for run in spec.layers]
    firsts = [0, *accumulate(len(run.pattern) * repeat for run, repeat in zip(spec.layers, kept, strict=True))]
    small = {
        at.layer: firsts[at.run] + min(at.trip, kept[at.run] - 1) * len(spec.layers[at.run].pattern) + at.place
        for at in spec.iter_layers()
    }
    return tuple(dict.fromkeys(small[tap] for tap in taps))


# Sizes


def _small_spec(
    request: Request,
    full: Schedule,
    cuts: Mapping[str, Cut],
    caps: Caps,
    kv_tokens: int,
    shape: StepShape,
    number_format: str | None,
) -> ModelSpec:
    spec = request.spec
    units = {stream.name: stream.units for stream in full.graph.streams}
    lowering = StepLowering(spec, request.shape)
    data = spec.model_dump(mode="json")
    hidden_cuts = [cuts[name] for name, count in units.items() if name in cuts and count == ceil(spec.hidden / LANES)]
    data["hidden"] = _width(spec.hidden, hidden_cuts)
    data["vocab"] = _split_width(spec.vocab, lowering.head.split, [cuts[lowering.head.matrix.name]])
    data["eos_token_ids"] = []
    for run, blocks in zip(data["layers"], lowering.blocks, strict=True):
        run["repeat"] = min(run["repeat"], caps.trips)
        for block, lowered in zip(run["pattern"], blocks, strict=True):
            for part, matrices in (("mixer", lowered.mixer), ("feed_forward", lowered.feed_forward)):
                wanted = [cuts[matrix.name] for matrix in matrices.matrices()]
                smaller = SMALLER[block[part]["kind"]]
                block[part] |= smaller(block[part], wanted, request.shape)
            window = block["mixer"].get("window")
            if window is not None:
                block["mixer"]["window"] = _window(window, request.shape.context, full.plan.kv_tokens, kv_tokens, shape)
    if isinstance(spec.residual, BlockAttentionResidual):
        data["residual"]["block"] = small_block(spec, spec.residual.block, caps.trips)
    if number_format is not None:
        data["kv"]["dtype"] = number_format
        data["quantization"] = _in_dtype(spec.quantization, number_format)
    if spec.kv.page_tokens is not None:
        data["kv"]["page_tokens"] = kv_tokens
    return ModelSpec.model_validate(data)


def _small_gqa(mixer: Mapping[str, Any], cuts: list[Cut], shape: StepShape) -> dict[str, Any]:
    """As few kv heads on a device as are attended in as many groups (one, or several), and give enough columns.

    Where devices share a kv head, or hold padding, all heads stay.
    """
    group, head_dim = mixer["heads"] // mixer["kv_heads"], mixer["head_dim"]
    kv = split_of(mixer["heads"], mixer["kv_heads"], shape.devices, shape.placement).kv
    if kv.every > 1 or kv.padding:
        return {}
    full = kv.each

    def alike(kv_heads: int) -> bool:
        at_once, full_at_once = (rows_at_once(shape.sequences, heads) for heads in (kv_heads, full))
        panels = ceil((group + 2) * kv_heads * head_dim / LANES)
        same = _same_groups(at_once, full_at_once, shape.sequences) and kv_heads % 2 == full % 2
        return same and cuts[0].units(panels) is not None

    kv_heads = next((heads for heads in range(min(full, 2), full) if alike(heads)), full) * kv.ring
    return {"kv_heads": kv_heads, "heads": kv_heads * group}


def _small_mla(mixer: Mapping[str, Any], cuts: list[Cut], shape: StepShape) -> dict[str, Any]:
    """As few heads on a device, and panels of the latents, as are attended in as many groups and can be cut so.

    What enters comes first in `cuts`, then the queries if they have a latent, then keys and values: head by head, or
    where the cache is expanded in panels of all.
    """
    split = latent_split(mixer["heads"], shape.devices, shape.placement)
    width, q_rank = mixer["nope_dim"] + mixer["rope_dim"], mixer["q_rank"]
    full_at_once = rows_at_once(shape.sequences, latent_chains(split.each))

    def fits(heads: int, kv_panels: int, q_panels: int) -> bool:
        queries, gate = ceil(heads * width / LANES), ceil(heads * mixer["value_dim"] / LANES)
        entering = kv_panels + ceil(mixer["rope_dim"] / LANES) + (q_panels or queries)
        entering += gate if mixer["output_gate"] else 0
        expanded = [ceil(heads * (mixer["nope_dim"] + mixer["value_dim"]) / LANES)]
        ups = expanded if mixer["cache"] == "expanded" else [heads, heads]
        sizes = [entering, *([queries] if q_panels else []), *ups]
        at_once = rows_at_once(shape.sequences, latent_chains(heads))
        possible = all(cut.units(size) is not None for cut, size in zip(cuts, sizes, strict=False))
        return possible and _same_groups(at_once, full_at_once, shape.sequences)

    def panels(rank: int) -> range:
        return range(min(2, ceil(rank / LANES)), ceil(rank / LANES) + 1)

    choices = product(
        range(min(2, split.each), split.each + 1), panels(mixer["kv_rank"]), panels(q_rank) if q_rank else (0,)
    )
    found = next((choice for choice in choices if fits(*choice)), None)
    if found is None:
        return {}
    heads, kv_panels, q_panels = found
    small = {"heads": heads * split.ring - split.padding, "kv_rank": _in_panels(mixer["kv_rank"], kv_panels)}
    return small | ({"q_rank": _in_panels(q_rank, q_panels)} if q_rank else {})


def _small_delta_rule(mixer: Mapping[str, Any], cuts: list[Cut], shape: StepShape) -> dict[str, Any]:
    """As few key heads on a device as fit the cuts, with their value heads.

    All stay where devices share a key head or hold padding, or where heads or sequences go in loops.
    """
    values = mixer.get("value_heads", mixer.get("heads", 0))
    keys = mixer.get("key_heads", values)
    group, kv = values // keys, split_of(values, keys, shape.devices, shape.placement).kv
    full = kv.each * group
    if kv.every > 1 or kv.padding or full * shape.rows > SEQUENCES_AT_ONCE or head_groups(kv.each, full) > 1:
        return {}
    ranks = [mixer.get(name) for name in ("decay_rank", "gate_rank")]

    def fits(heads: int) -> bool:
        value_heads = heads * group
        lanes = ceil(value_heads / LANES)
        small = (ceil(ranks[0] / LANES) if ranks[0] else lanes) + lanes
        wide = 2 * heads + value_heads + (ceil(ranks[1] / LANES) if ranks[1] else value_heads)
        seconds = [value_heads for rank in ranks if rank]
        together = len(cuts) == len(seconds) + 2
        sizes = [wide + small, *seconds] if together else [wide, small, *seconds]
        return all(cut.units(size) is not None for cut, size in zip(cuts, sizes, strict=False))

    heads = next((heads for heads in range(min(2, kv.each), kv.each) if fits(heads)), kv.each) * kv.ring
    return {"heads": heads} if "heads" in mixer else {"key_heads": heads, "value_heads": heads * group}


def _same_groups(at_once: int, full_at_once: int, sequences: int) -> bool:
    """Whether all sequences together, several of them or one by one."""
    return (at_once == sequences) == (full_at_once == sequences) and (at_once == 1) == (full_at_once == 1)


def _in_panels(full: int, panels: int) -> int:
    """As far from whole panels as `full`."""
    return (panels - 1) * LANES + ((full - 1) % LANES + 1)


def _small_dense(feed_forward: Mapping[str, Any], cuts: list[Cut], shape: StepShape) -> dict[str, Any]:
    split = dense_split(feed_forward["width"], shape.devices, shape.placement)
    return {"width": _split_width(feed_forward["width"], split, [cuts[0]], 2 if feed_forward["gated"] else 1)}


def _small_moe(feed_forward: Mapping[str, Any], cuts: list[Cut], shape: StepShape) -> dict[str, Any]:
    """A few experts, in as many groups as there were; as many of them chosen as fill a ring. The router comes first in
    `cuts`, then the shared expert, then the others."""
    router, top_k = feed_forward["router"], min(feed_forward["top_k"], TOP_K)
    groups, gate = router["groups"], int(feed_forward["shared_gate"])
    fewest = max(2, ceil(2 * top_k / router["groups_kept"]))
    fits = (
        groups * size
        for size in range(fewest, feed_forward["experts"] // groups)
        if cuts[0].units(ceil((groups * size + gate) / LANES)) is not None
    )
    small: dict[str, Any] = {"top_k": top_k, "experts": next(fits, feed_forward["experts"])}
    small |= _small_dense(feed_forward, cuts[-2:], replace(shape, devices=1))
    if feed_forward["shared"] is not None:
        small["shared"] = feed_forward["shared"] | _small_dense(feed_forward["shared"], cuts[1:], shape)
    return small


def _in_dtype(quantization: Quantization, dtype: str) -> dict[str, Any]:
    """The same, computed in `dtype`; what is not quantised is stored in it."""
    stored: dict[str, Any] = {family: quantization.format(family) for family in FAMILIES}
    stored |= {"weights": quantization.weights, "embedding": dtype}
    return {key: dtype if name in ("bf16", "f32") else name for key, name in stored.items()} | {"arithmetic": dtype}


SMALLER = {
    "gqa": _small_gqa,
    "mla": _small_mla,
    "kda": _small_delta_rule,
    "gated_delta": _small_delta_rule,
    "dense": _small_dense,
    "moe": _small_moe,
}
"""Kind of mixer or feed-forward → the keys that change: (part as JSON, wanted cuts of its matrices, step shape)."""


def _split_width(full: int, split: Split, cuts: list[Cut], matrices: int = 1) -> int:
    """The same for a width that is divided: as many devices have less than the others, and as much less."""
    each = _width(split.each, cuts, matrices)
    return max(each * split.ring - split.padding, 1)


def _width(full: int, cuts: list[Cut], matrices: int = 1) -> int:
    """The least width that can be cut so and is as far from whole panels as `full`, at least two panels if it has."""
    panels = ceil(full / LANES)
    fits = (n for n in range(min(panels, 2), panels) if all(cut.units(n * matrices) is not None for cut in cuts))
    return _in_panels(full, next(fits, panels))


def _kv_tokens(full: int, full_dtype: str, dtype: str, shape: StepShape) -> int:
    """A tile of two chunks if there were more, of one if there was one; room for the tokens of a step."""
    chunk, full_chunk = chunk_tokens(dtype), chunk_tokens(full_dtype)
    wanted = max(min(full // full_chunk, 2) * chunk, shape.sequence_rows)
    return min(tokens for tokens in KV_TOKENS if tokens >= wanted)


def _context(full: int, full_tile: int, tile: int, most: int) -> int:
    """As many tiles, up to `most`, the last one full if it was."""
    tiles = min(ceil(full / full_tile), most)
    return min(full, tiles * tile - (0 if full % full_tile == 0 else 3))


def _window(full: int, context: int, full_tile: int, tile: int, shape: StepShape) -> int:
    """Beyond the context if it was; else two tiles or the same share of one, and more if it was no whole one."""
    if full <= tile:
        return full
    if full >= context:
        return max(full * tile // full_tile, shape.context)
    return max(1, min(full // full_tile, 2) * tile + (full % full_tile) * tile // full_tile)

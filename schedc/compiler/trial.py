"""Steps of an interpreted kernel beside the plain-JAX reference, over the same random weights and caches.

The caches are full of random tokens from the start, so a row can be put at any position, what lies behind its position
must not matter, and nothing has to be prefilled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np

from schedc.compiler.noted import LEAST_OF_FP8, Copies, noted_of_rows
from schedc.compiler.recording import Recorded
from schedc.compiler.streams import EXACT, Streams, stream_problems
from schedc.compiler.winners import winners_of
from schedc.lower.graph import StepShape
from schedc.placement.caches import devices_in_turn
from schedc.reference.reference import Cache, Noted, Reference
from schedc.run.decoder import Decoder, page_table
from schedc.spec.model import ModelSpec
from schedc.weights.cache import HEADS_AND_SIDES
from schedc.weights.head_order import for_kernel, kernel_cache
from schedc.weights.kept import Kept, Recurrent, kept_of_row
from schedc.weights.layout import Layout, on_device
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from schedc.weights.source import WeightSource
from schedc.weights.state import keeps_state

DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "fp8": jnp.float8_e4m3fn}

Winners = Mapping[int, np.ndarray]
"""By layer int32[rows, top_k], for the reference in place of its own."""

State = list[Kept]
"""Of every layer what is kept, such as k and v: f32[rows, capacity, heads, width] a side, or a `Recurrent`."""


@dataclass(frozen=True)
class Step:
    """A token, its position, whether it counts and of which sequence it is, for every row."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    active: tuple[bool, ...]
    sequences: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """What the kernel and the reference said; `before` and `got` are the kernel's caches, in its order."""

    step: Step
    device_ids: np.ndarray
    """int32[devices, rows]"""
    logits: np.ndarray
    exact_logits: np.ndarray
    rounded_logits: np.ndarray
    before: State
    got: State
    exact: State
    rounded: State
    copies_differ: bool
    """Devices that keep the same heads do not have the same in their caches."""
    streams: Streams | None = None
    """The residual stream after the tapped layers, if there are any."""
    copies: Copies | None = None
    """What phases have left in their buffers, if the kernel copies it out."""
    rings: Mapping[int, int] = field(default_factory=dict)
    """Layers whose caches are rings, with the tokens that those have room for."""
    routed: Outcome | None = None
    """The same against a reference whose tokens go to the experts that the kernel has chosen, if it copies them out."""

    @property
    def ids(self) -> np.ndarray:
        """int32[rows], as the first device says them."""
        return self.device_ids[0]


class Trial:
    """One kernel and the reference. `kernel` is the generated module, written with logits.

    `interpret` are the interpreter's settings. For a kernel that rounds to bf16 the reference runs twice: exactly, and
    rounding where it can. The weights are random unless `source` gives them. `records` says what the kernel copies out
    of phases, if it does. Compiling takes seconds, a step of a small model about half a second.
    """

    def __init__(
        self,
        spec: ModelSpec,
        shape: StepShape,
        kernel: ModuleType,
        layouts: Sequence[Layout],
        kv_tokens: int,
        interpret: Any,
        seed: int = 0,
        source: WeightSource | None = None,
        records: tuple[Recorded, ...] = (),
    ) -> None:
        self.spec, self.shape, self.records = spec, shape, records
        source = source or RandomWeights(spec, seed)
        given = for_kernel(source, spec)
        arrays = [pack_arrays([on_device(layout, d) for layout in layouts], given) for d in range(shape.devices)]
        table = self._random_pages(kv_tokens, seed) if spec.kv.layout == "paged" else None
        self.decoder = Decoder(kernel, spec, arrays.__getitem__, shape, kv_tokens, interpret, table)
        self._exact = Reference(spec, source)
        rounds = spec.quantization.operand_dtype == "bf16"
        self._rounded = Reference(spec, source, jnp.bfloat16) if rounds else self._exact
        self._random = np.random.default_rng(seed)
        self.state = self._random_state()
        self._last: tuple[Step, State] | None = None
        self._next = [self.decoder.caches.capacity] * shape.sequences
        self._words: dict[str, np.ndarray] = {}
        if records:
            self.decoder.after_call = self._copy_words
        for sequence in range(shape.sequences):
            kept = [kept_of_row(kept, sequence, self.decoder.caches.capacity) for kept in self.state]
            self.decoder.fill(sequence, kept)

    def _copy_words(self, results: Mapping[str, Any]) -> None:
        """Of every array of copies what each device has left."""
        names = {one.array for one in self.records if one.array}
        self._words = {name: np.asarray(results[name]).reshape(self.shape.devices, -1, 128) for name in names}

    def _random_pages(self, tokens: int, seed: int) -> np.ndarray:
        """Pages in disorder, int[rows, tiles]."""
        sharing = devices_in_turn(self.spec, self.shape.devices, self.shape.placement)
        tiles, pages = self.shape.sequence_pages(tokens, sharing), self.shape.page_count(tokens, sharing)
        return np.random.default_rng(seed).permutation(pages)[page_table(None, self.shape.sequences, tiles, pages)]

    def _random_state(self) -> State:
        state: State = []
        for at in self.spec.iter_layers():
            if keeps_state(at.block.mixer):
                empty = self.decoder.caches.states(at).empty()
                sizes = [(self.shape.sequences, *part.shape) for part in empty]
                state.append(Recurrent(*(self._random.standard_normal(size, np.float32) for size in sizes)))
                continue
            layout = self.decoder.caches.layout(at)
            sizes = [(self.shape.sequences, layout.capacity, layout.heads, side.width) for side in layout.sides]
            sides = [self._random.standard_normal(size, np.float32) for size in sizes]
            state.append(tuple(np.asarray(side.astype(DTYPES[layout.dtype]), np.float32) for side in sides))
        return state

    def step(self, positions: Sequence[int], active: Sequence[bool] | None = None) -> Outcome:
        """One step of random tokens at the `positions` of all rows. Both go on with the caches they have written.

        Tokens of one sequence that begin among those of the step before go on behind what is before them, others
        behind all.
        """
        accepted = self._accept(positions[0]) if self.shape.rows_are == "tokens" else None
        tokens = self._random.integers(0, self.spec.vocab, self.shape.rows)
        given = Step(
            tuple(int(token) for token in tokens),
            tuple(positions),
            (True,) * self.shape.rows if active is None else tuple(active),
            tuple(row if self.shape.rows_are == "sequences" else 0 for row in range(self.shape.rows)),
        )
        expected = self._expected(self._exact, given)
        exact_logits, exact, exact_stream, exact_notes = expected
        if self._rounded is not self._exact:
            expected = self._expected(self._rounded, given)
        rounded_logits, rounded, rounded_stream, rounded_notes = expected
        self._refill_rings(positions, given.active)
        before = self.kernel_state()
        of_sequences = given.positions[: self.shape.sequences]
        answer = self.decoder.step(given.tokens, of_sequences, given.active, accepted)
        outcome = Outcome(
            given,
            answer["device_ids"],
            answer["logits"],
            exact_logits,
            rounded_logits,
            self._by_row(before),
            self._by_row(self.kernel_state()),
            exact,
            rounded,
            self.copies_differ(),
            Streams(self.shape.taps, answer["hidden"], exact_stream, rounded_stream) if self.shape.taps else None,
            Copies(self.records, self._words, exact_notes, rounded_notes)
            if exact_notes is not None and rounded_notes is not None
            else None,
            rings=self.decoder.caches.ring_tokens(),
        )
        if outcome.copies is not None:
            outcome, rounded = self._routed(outcome, outcome.copies, rounded)
        self._write(rounded, given)
        self._last = given, rounded
        return outcome

    def _refill_rings(self, positions: Sequence[int], active: Sequence[bool]) -> None:
        """A ring holds what one position sees: the cache of a sequence that does not go on behind its last token is
        filled anew with all before it."""
        if not self.decoder.caches.ring_tokens():
            return
        for row, position in enumerate(positions):
            if position not in (0, self._next[row]):
                self.decoder.fill(row, [kept_of_row(kept, row, position) for kept in self.state])
            self._next[row] = position + int(active[row])

    def _routed(self, outcome: Outcome, copies: Copies, rounded: State) -> tuple[Outcome, State]:
        """With what a reference says that chooses as the kernel has: what follows from another winner is no fault of
        what follows. And the state that such a one leaves, rounded."""
        winners = winners_of(copies, self.spec, outcome.step.active)
        if not winners:
            return outcome, rounded
        logits, exact, _, notes = self._expected(self._exact, outcome.step, winners)
        expected = logits, exact, logits, notes
        if self._rounded is not self._exact:
            expected = self._expected(self._rounded, outcome.step, winners)
        rounded_logits, rounded, _, rounded_notes = expected
        assert notes is not None and rounded_notes is not None
        copies = replace(copies, exact=notes, rounded=rounded_notes)
        routed = replace(
            outcome,
            exact_logits=logits,
            rounded_logits=rounded_logits,
            exact=exact,
            rounded=rounded,
            copies=copies,
        )
        return replace(outcome, copies=copies, routed=routed), rounded

    def _accept(self, position: int) -> int:
        """How many rows of the last step one at `position` goes on behind; the reference goes on from there."""
        if self._last is None:
            return 0
        step, new = self._last
        count = sum(step.active)
        accepted = position - step.positions[0]
        accepted = accepted if 0 <= accepted <= count else count
        for layer, kept in enumerate(new):
            if isinstance(kept, Recurrent) and accepted:
                self.state[layer] = Recurrent(*(np.asarray(part[accepted - 1 : accepted]) for part in kept))
        return accepted

    def _by_row(self, state: State) -> State:
        """What the kernel keeps, with a state for every row, instead of one for every place of the ring."""
        if self.shape.rows_are == "sequences":
            return state
        places = self.decoder.places_of_rows()
        return [Recurrent(*(part[places] for part in kept)) if isinstance(kept, Recurrent) else kept for kept in state]

    def _expected(
        self, reference: Reference, step: Step, winners: Winners | None = None
    ) -> tuple[np.ndarray, State, np.ndarray, Noted | None]:
        """The reference's logits, the caches it leaves, the stream after the taps, f32[taps, rows, hidden], and its
        notes, if something is compared with them."""
        dtype = DTYPES["bf16" if reference is not self._exact else "f32"]
        if self.spec.kv.dtype == "fp8":
            dtype = DTYPES["fp8"]
        runs = []
        for run_index, run in enumerate(self.spec.layers):
            places: list[tuple[Any, ...]] = []
            for place in range(len(run.pattern)):
                layers = [at.layer for at in self.spec.iter_layers() if (at.run, at.place) == (run_index, place)]
                sides = zip(*(self.state[layer] for layer in layers), strict=True)
                if isinstance(self.state[layers[0]], Recurrent):
                    places.append(Recurrent(*(jnp.asarray(np.stack(side)) for side in sides)))
                else:
                    places.append(tuple(jnp.asarray(np.stack(side), dtype) for side in sides))
            runs.append(tuple(places))
        before = Cache(tuple(runs), self.decoder.caches.capacity)
        if self.shape.rows_are == "tokens":
            return self._one_by_one(reference, step, before, winners)
        logits, cache, stream, notes = self._decode(reference, step.tokens, step.positions, before, winners)
        return logits, cache.layers(self.spec), stream, notes

    def _decode(
        self,
        reference: Reference,
        tokens: Sequence[int],
        positions: Sequence[int],
        cache: Cache,
        winners: Winners | None = None,
    ) -> tuple[np.ndarray, Cache, np.ndarray, Noted | None]:
        taps = list(self.shape.taps)
        if self.records:
            logits, cache, outputs, notes = reference.decode_noted(tokens, positions, cache, winners)
            return logits, cache, outputs[taps], notes
        if not taps:
            return *reference.decode(tokens, positions, cache), np.zeros((0, len(tokens), self.spec.hidden)), None
        logits, cache, outputs = reference.decode_with_outputs(tokens, positions, cache)
        return logits, cache, outputs[taps], None

    def _one_by_one(
        self, reference: Reference, step: Step, cache: Cache, winners: Winners | None = None
    ) -> tuple[np.ndarray, State, np.ndarray, Noted | None]:
        """Tokens of one sequence, each decoded by itself. Of a state that after every row, [rows, …]."""
        logits = np.zeros((self.shape.rows, self.spec.vocab), np.float32)
        stream = np.zeros((len(self.shape.taps), self.shape.rows, self.spec.hidden), np.float32)
        after, noted = [cache.layers(self.spec)] * self.shape.rows, list[Noted]()
        for row in range(sum(step.active)):
            own = {layer: ids[row : row + 1] for layer, ids in (winners or {}).items()}
            of_row, cache, left, notes = self._decode(reference, [step.tokens[row]], [step.positions[row]], cache, own)
            noted += [] if notes is None else [notes]
            logits[row], stream[:, row] = of_row[0], left[:, 0]
            after[row] = cache.layers(self.spec)
        last: State = list(cache.layers(self.spec))
        for layer, kept in enumerate(last):
            if isinstance(kept, Recurrent):
                every = zip(*(layers[layer] for layers in after), strict=True)
                last[layer] = Recurrent(*(np.concatenate(parts) for parts in every))
        return logits, last, stream, noted_of_rows(noted, self.shape.rows) if noted else None

    def _write(self, new: State, step: Step) -> None:
        """Keep the reference's new token of every active row, as the cache rounds it, or its new state."""
        for kept, new_kept in zip(self.state, new, strict=True):
            if isinstance(kept, Recurrent) and self.shape.rows_are == "tokens":
                continue  # Which of them is kept, the next step says.
            dtype = np.float32 if isinstance(kept, Recurrent) else DTYPES[self.spec.kv.dtype]
            for row in range(self.shape.rows):
                if step.active[row]:
                    at = _newest(kept, step, row)
                    for side, new_side in zip(kept, new_kept, strict=True):
                        side[at] = np.asarray(new_side[at].astype(dtype), np.float32)

    def kernel_state(self) -> State:
        """The kernel's caches, in the kernel's order of dimensions."""
        return self.decoder.caches.read(self.decoder.words())

    def copies_differ(self) -> bool:
        """Whether devices that keep the same heads do not have the same in their caches."""
        words = self.decoder.words()
        first, last = (self.decoder.caches.read(words, copy) for copy in ("first", "last"))
        return any((a != b).any() for layers in zip(first, last, strict=True) for a, b in zip(*layers, strict=True))


@dataclass(frozen=True)
class Difference:
    """How far the kernel's logits and new keys and values are from exact ones, and how far they may be."""

    logits: float
    logits_limit: float
    cache: float
    cache_limit: float


def difference(outcome: Outcome, spec: ModelSpec) -> Difference:
    """Over the active rows. The limit is that of f32 sums plus twice what rounding alone does to the reference.

    Of a cache in fp8, numbers that a kernel has rounded to bf16 before may be kept as the next ones.
    """
    active = np.array(outcome.step.active)
    if not active.any():
        return Difference(0.0, EXACT, 0.0, EXACT)
    exact = outcome.exact_logits[active]
    rounding = float(np.abs(outcome.rounded_logits[active] - exact).max())
    new = _new_tokens(outcome.got, outcome, spec, reordered=True)
    exact_new = _new_tokens(outcome.exact, outcome, spec)
    cache_rounding = np.abs(_new_tokens(outcome.rounded, outcome, spec) - exact_new).max()
    otherwise = spec.kv.dtype == "fp8" and spec.quantization.operand_dtype == "bf16"
    behind, read = otherwise * LEAST_OF_FP8["behind"], otherwise * LEAST_OF_FP8["read"]
    return Difference(
        _largest(outcome.logits[active] - exact),
        EXACT + 2 * rounding + behind * _largest(exact),
        _largest(new - exact_new),
        EXACT + max(2 * float(cache_rounding), read * _largest(exact_new)),
    )


def problems(outcome: Outcome, spec: ModelSpec) -> list[str]:
    """What the kernel got wrong in one step, one line each."""
    found = difference(outcome, spec)
    lines = []
    for device, ids in enumerate(outcome.device_ids):
        if (ids != outcome.ids).any():
            lines.append(f"device {device} says ids {ids.tolist()}, device 0 {outcome.ids.tolist()}")
    if outcome.copies_differ:
        lines.append("devices that keep the same heads do not have the same in their caches")
    for row, active in enumerate(outcome.step.active):
        where = f"row {row} at position {outcome.step.positions[row]}"
        if active:
            lines += _logit_problems(outcome, row, where, found)
        elif outcome.ids[row] != -1:
            lines.append(f"{where} is inactive, but its id is {outcome.ids[row]} and not -1")
    streams = [] if outcome.streams is None else stream_problems(outcome.streams, outcome.step.active)
    return lines + _cache_problems(outcome, spec, found) + streams


def _logit_problems(outcome: Outcome, row: int, where: str, found: Difference) -> list[str]:
    logits, exact, chosen = outcome.logits[row], outcome.exact_logits[row], int(outcome.ids[row])
    if not np.isfinite(logits).all():
        return [f"{where}: {np.count_nonzero(~np.isfinite(logits))} of {len(logits)} logits are not finite"]
    lines = []
    worst = int(np.abs(logits - exact).argmax())
    if abs(logits[worst] - exact[worst]) > found.logits_limit:
        lines.append(
            f"{where}: the logit of id {worst} is {logits[worst]:.5g}, the reference says {exact[worst]:.5g} "
            f"(difference {abs(logits[worst] - exact[worst]):.2g}, limit {found.logits_limit:.2g})"
        )
    if chosen != logits.argmax():
        lines.append(f"{where}: the id is {chosen}, but the lowest id of the largest logit is {logits.argmax()}")
    if not lines and exact.max() - exact[chosen] > 2 * found.logits_limit:
        lines.append(f"{where}: the id is {chosen}, the reference says {exact.argmax()}")
    return lines


def _cache_problems(outcome: Outcome, spec: ModelSpec, found: Difference) -> list[str]:
    lines = []
    active = np.array(outcome.step.active)
    written = np.array(outcome.step.sequences)[active], np.array(outcome.step.positions)[active]
    for at in spec.iter_layers():
        if isinstance(outcome.got[at.layer], Recurrent):
            lines += _state_problems(outcome, at.layer, found)
            continue
        _, sides = HEADS_AND_SIDES[at.block.mixer.kind](at.block.mixer)
        exact = kernel_cache(outcome.exact[at.layer], at.block.mixer)
        for side, expected in enumerate(exact):
            name = sides[side].name
            before, got = outcome.before[at.layer][side], outcome.got[at.layer][side]
            kept = np.ones(got.shape[:2], bool)
            ring = outcome.rings.get(at.layer, got.shape[1])
            for row, position in zip(*written, strict=True):
                kept[row, position % ring :: ring] = False  # All that lie there, of a ring.
            changed = np.argwhere(kept & (before.view(np.int32) != got.view(np.int32)).any(axis=(2, 3)))
            if len(changed):
                row, position = changed[0]
                lines.append(f"layer {at.layer}: {name} of row {row} at position {position} changed, and was not to")
            for row, position in zip(*written, strict=True):
                worst = _largest(got[row, position] - expected[row, position])
                if worst > found.cache_limit:
                    lines.append(
                        f"layer {at.layer}: the new {name} of row {row} at position {position} differs by "
                        f"{worst:.2g} (limit {found.cache_limit:.2g})"
                    )
    return lines


def _state_problems(outcome: Outcome, layer: int, found: Difference) -> list[str]:
    """Of an active row the whole state is new; of the others nothing may change."""
    lines = []
    for side, name in enumerate(Recurrent._fields):
        before, got, expected = (state[layer][side] for state in (outcome.before, outcome.got, outcome.exact))
        for row, active in enumerate(outcome.step.active):
            where = f"layer {layer}: {name} of row {row} at position {outcome.step.positions[row]}"
            if not active:
                changed = (before[row].view(np.int32) != got[row].view(np.int32)).any()
                lines += [f"{where} changed, and was not to"] if changed else []
                continue
            worst = _largest(got[row] - expected[row])
            if worst > found.cache_limit:
                lines.append(f"{where} differs by {worst:.2g} (limit {found.cache_limit:.2g})")
    return lines


def _newest(kept: Kept, step: Step, row: int) -> tuple[int, ...]:
    """Where the new numbers of a row are in a side of what is kept: at its token, or all of its state."""
    return (row,) if isinstance(kept, Recurrent) else (step.sequences[row], step.positions[row])


def _new_tokens(state: State, outcome: Outcome, spec: ModelSpec, reordered: bool = False) -> np.ndarray:
    """All numbers of the new tokens of the active rows, flat, in the kernel's order."""
    parts = []
    for at, kept in zip(spec.iter_layers(), state, strict=True):
        ordered = kept if reordered else kernel_cache(kept, at.block.mixer)
        for row, active in enumerate(outcome.step.active):
            if active:
                newest = _newest(kept, outcome.step, row)
                parts += [side[newest].reshape(-1) for side in ordered]
    return np.concatenate(parts)


def _largest(differences: np.ndarray) -> float:
    """Infinite for numbers that are none."""
    return float(np.where(np.isfinite(differences), np.abs(differences), np.inf).max())

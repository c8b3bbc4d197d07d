"""A generated kernel with its weights and caches, ready to decode: interpreted on a CPU, compiled on a TPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from schedc.errors import UserError
from schedc.lower.graph import StepShape
from schedc.placement.caches import devices_in_turn
from schedc.placement.widths import head_split
from schedc.run.caches import Caches
from schedc.spec.model import ModelSpec
from schedc.weights.cache import empty_cache
from schedc.weights.kept import Kept

WeightsOf = Callable[[int], Mapping[str, np.ndarray]]
"""The packed weights int32[rows, 128] of a device, by name. Asked for the devices of this host alone."""


class Decoder:
    """Steps of one kernel. The caches live on the devices and are updated in place.

    `kernel` is the generated module for a step of `shape`. `interpret` are the interpreter's settings, None to compile
    for the default devices, of which the first `shape.devices` are used. Of a paged cache `table` int[rows, tiles] is
    the page of every tile of every sequence, as `page_table` wants it.
    """

    def __init__(
        self,
        kernel: ModuleType,
        spec: ModelSpec,
        weights: WeightsOf,
        shape: StepShape,
        kv_tokens: int,
        interpret: Any = None,
        table: np.ndarray | None = None,
    ) -> None:
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        self.spec, self.shape = spec, shape
        self.rows, self.context = shape.rows, shape.context
        self.kernel = kernel
        mesh = Mesh(np.array(jax.devices()[: shape.devices]), ("device",))
        self._mesh, self._interpret = mesh, interpret if interpret is not None else False
        self._step = kernel.decode_step(mesh, interpret=self._interpret)
        self.before_call: Callable[[Mapping[str, Any]], None] | None = None
        """Gets the arguments of every call by name, all devices' parts one after the other."""
        self.after_call: Callable[[Mapping[str, Any]], None] | None = None
        """Gets the outputs of every call by name."""
        # Where in the ring of states a step begins, and how many tokens it has, if rows are tokens of one sequence.
        self._base = self._count = 0
        self._several: dict[tuple[int, tuple[int, ...]], Any] = {}
        # Placed as the step returns its state: a step is then compiled once.
        self._sharding = NamedSharding(mesh, PartitionSpec("device") if shape.devices > 1 else PartitionSpec())
        tiles = -(-shape.context // kv_tokens)
        if spec.kv.layout == "paged":
            sharing = devices_in_turn(spec, shape.devices, shape.placement)
            pages = shape.sequence_pages(kv_tokens, sharing), shape.page_count(kv_tokens, sharing)
            table = page_table(table, shape.sequences, *pages)
        self.caches = Caches(spec, shape, tiles * kv_tokens, kv_tokens, table)
        empty = {name: empty_cache(layout) for name, layout in self.caches.device_layouts().items()}
        self.state = {name: self._place(name, partial(_same, cache)) for name, cache in empty.items()}
        given = [name for name in kernel.ARGUMENTS if name not in kernel.STATE]
        self._weights = {
            name: self._place(name, partial(_named, name, weights))
            for name in given
            if len(kernel.ARGUMENTS[name][1]) == 2
        }

    def _place(self, name: str, part: Callable[[int], np.ndarray]) -> Any:
        """An argument of the kernel out of the parts of the devices of this host."""
        import jax

        shape = self.kernel.ARGUMENTS[name][1]
        each = shape[0] // self.shape.devices
        return jax.make_array_from_callback(shape, self._sharding, lambda index: part(_start(index) // each))

    def words(self) -> dict[int, dict[str, np.ndarray]]:
        """A copy of the caches of every device of this host."""
        found: dict[int, dict[str, np.ndarray]] = {}
        for name, value in self.state.items():
            for device, part in self._parts(value).items():
                found.setdefault(device, {})[name] = np.array(part)
        return found

    def _parts(self, value: Any, axis: int = 0) -> dict[int, Any]:
        """What each device of this host has of an array int32[rows, 128] whose dimension `axis` is divided."""
        each = value.shape[axis] // self.shape.devices
        return {_start(shard.index, axis) // each: shard.data for shard in value.addressable_shards}

    def fill(self, row: int, layers: Sequence[Kept]) -> None:
        """Put a prefilled sequence into the cache: per layer what is kept of its tokens, such as k and v."""
        words = self.words()
        self.caches.fill(words, row, layers)
        self.state = {name: self._place(name, partial(_named, name, words.__getitem__)) for name in self.state}
        self._base = self._count = 0

    def step(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        active: Sequence[bool] | None = None,
        accepted: int | None = None,
    ) -> dict[str, np.ndarray]:
        """One token a row: `ids` int32[rows], -1 where inactive, and `logits` f32[rows, vocab] if they are written.

        `positions`: one a sequence. Where the rows are consecutive tokens of one, it is that of the first, and active
        rows come first; `accepted` is how many of the step before this one goes on behind (all that were active, if it
        is not given), and what it writes takes the place of the others. Raises ValueError for rows that cannot be such
        tokens.

        `device_ids` int32[devices, rows] are the ids as each device of this host says them; logits are its devices'.
        `hidden` f32[taps, rows, hidden]: the residual stream after the layers `shape.taps`, if there are any.
        """
        self._go_on(positions, active, accepted)
        results = self._call(self._step, tokens, positions, active)
        ids = {device: np.asarray(part)[: self.rows, 0] for device, part in self._parts(results["ids"]).items()}
        answer = {"device_ids": np.stack(list(ids.values())), "ids": next(iter(ids.values()))}
        if "logits" in results:
            answer["logits"] = self._logits(self._parts(results["logits"]))
        if "hidden" in results:
            answer["hidden"] = self._hidden(next(iter(self._parts(results["hidden"]).values())))
        return answer

    def steps(
        self,
        count: int,
        tokens: Sequence[int],
        positions: Sequence[int],
        active: Sequence[bool] | None = None,
        ends: Collection[int] = (),
    ) -> dict[str, np.ndarray]:
        """As `count` steps one after the other, in one call: each row takes its own ids. `ids` int32[count, rows].

        A row becomes inactive, its ids -1, after an id of `ends` and where its context is full. The others go on to
        the end of the call. `logits` f32[count, rows, vocab] and `hidden` f32[count, taps, rows, hidden] if
        they are written. Each `count` is compiled once.
        Raises UserError for a kernel whose ids are no next tokens.
        """
        if not hasattr(self.kernel, "decode_steps"):
            raise UserError(f"{self.kernel.NAME}: one step a call, as its ids are not the tokens of a next step")
        key = (count, tuple(sorted(ends)))
        if key not in self._several:
            self._several[key] = self.kernel.decode_steps(self._mesh, count, ends=key[1], interpret=self._interpret)
        results = self._call(self._several[key], tokens, positions, active)
        answer = {"ids": next(np.asarray(part) for part in self._parts(results["ids"], 1).values())[:, : self.rows, 0]}
        if "logits" in results:
            parts = self._parts(results["logits"], 1)
            each = [self._logits({device: part[step] for device, part in parts.items()}) for step in range(count)]
            answer["logits"] = np.stack(each)
        if "hidden" in results:
            first = next(iter(self._parts(results["hidden"], 1).values()))
            answer["hidden"] = np.stack([self._hidden(first[step]) for step in range(count)])
        return answer

    def _call(
        self, call: Any, tokens: Sequence[int], positions: Sequence[int], active: Sequence[bool] | None
    ) -> dict[str, Any]:
        """The outputs of a call on these scalars by name; the states are taken over."""
        scalars = {
            "token": np.asarray(tokens, np.int32),
            "position": np.asarray(positions, np.int32),
            "active": np.asarray([True] * self.rows if active is None else active, np.int32),
        }
        if self.caches.table is not None:
            scalars["page"] = np.asarray(self.caches.table, np.int32).reshape(-1)
        if self.shape.rows_are == "tokens":
            scalars["base"] = np.asarray([self._base], np.int32)
        given = scalars | self._weights | self.state
        if self.before_call is not None:
            self.before_call(given)
        results = dict(zip(self.kernel.OUTPUTS, call(*(given[name] for name in self.kernel.ARGUMENTS)), strict=True))
        self.state = {name: results[name] for name in self.kernel.STATE}
        if self.after_call is not None:
            self.after_call(results)
        return results

    def places_of_rows(self) -> list[int]:
        """Where in the ring of states the last step has left that after each of its rows."""
        return [(self._base + 1 + row) % self.shape.kept_states for row in range(self.rows)]

    def _go_on(self, positions: Sequence[int], active: Sequence[bool] | None, accepted: int | None) -> None:
        """Check the rows of a step, and begin it behind the accepted ones of the last."""
        if len(positions) != self.shape.sequences:
            raise ValueError(f"{len(positions)} positions are given, of {self.shape.sequences} sequences")
        if self.shape.rows_are == "sequences":
            if accepted is not None:
                raise ValueError("rows that are sequences are not accepted; their next positions say where they go on")
            return
        given = [True] * self.rows if active is None else [bool(each) for each in active]
        count = sum(given)
        if not all(given[:count]):
            raise ValueError(f"rows are tokens one after the other, so the active ones come first, not {given}")
        if positions[0] + count > self.context:
            raise ValueError(
                f"{count} tokens from position {positions[0]} on do not fit the context of {self.context}; "
                f"make at most {max(self.context - positions[0], 0)} active"
            )
        accepted = self._count if accepted is None else accepted
        if not 0 <= accepted <= self._count:
            raise ValueError(f"{accepted} tokens are accepted, the step before had {self._count}")
        self._base, self._count = (self._base + accepted) % self.shape.kept_states, count

    def _hidden(self, part: Any) -> np.ndarray:
        """f32[taps, rows, hidden] from the panels of the padded rows, which every device has."""
        taps, padded = len(self.shape.taps), self.shape.padded_rows
        panels = np.asarray(part).view(np.float32).reshape(taps, -1, padded, 128)
        return panels.transpose(0, 2, 1, 3).reshape(taps, padded, -1)[:, : self.rows, : self.spec.hidden]

    def _logits(self, parts: Mapping[int, Any]) -> np.ndarray:
        """f32[rows, vocab] from every device's panels of the padded rows."""
        padded = self.shape.padded_rows
        split = head_split(self.spec.vocab, self.shape.devices, self.shape.placement)
        logits = np.zeros((self.rows, self.spec.vocab), np.float32)
        for device, part in parts.items():
            panels = np.asarray(part).view(np.float32).reshape(-1, padded, 128)
            columns = panels.transpose(1, 0, 2).reshape(padded, -1)
            held = split.held(device)
            logits[:, held.start : held.stop] = columns[: self.rows, : len(held)]
        return logits


def page_table(given: np.ndarray | None, rows: int, tiles: int, pages: int) -> np.ndarray:
    """int[rows, tiles], by default one page after the other.

    Raises ValueError for what the kernel takes for granted: a page for every tile, within 0 … pages-1, no two the same.
    """
    if given is None:
        if rows * tiles > pages:
            raise ValueError(f"{rows} sequences of {tiles} tiles take {rows * tiles} pages, the cache has {pages}")
        return np.arange(rows * tiles).reshape(rows, tiles)
    if given.shape != (rows, tiles):
        raise ValueError(f"the table of pages is {list(given.shape)}, the kernel takes [{rows}, {tiles}]")
    if given.min() < 0 or given.max() >= pages:
        raise ValueError(f"the table of pages has {given.min()}..{given.max()}, the cache has 0..{pages - 1}")
    found, times = np.unique(given, return_counts=True)
    if (times > 1).any():
        raise ValueError(
            f"page {found[times > 1][0]} is twice in the table of pages: sequences would overwrite each other"
        )
    return given


def _same(array: np.ndarray, device: int) -> np.ndarray:
    return array


def _named(name: str, of_device: WeightsOf, device: int) -> np.ndarray:
    return np.asarray(of_device(device)[name])


def _start(index: Any, axis: int = 0) -> int:
    """The first row of a part of an array; a part that is all has none."""
    return index[axis].start or 0

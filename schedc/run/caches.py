"""The caches of all devices: filled from, and read back as, those of the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedc.lower.caches.ring import ring_tokens
from schedc.lower.graph import StepShape
from schedc.placement.caches import cached_heads, sharing_devices
from schedc.placement.split import Split
from schedc.run.states import States
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda
from schedc.spec.model import LayerAt, ModelSpec
from schedc.weights.cache import CacheLayout, cache_layout, read_sequence, write_sequence
from schedc.weights.head_order import kernel_cache
from schedc.weights.kept import Kept, Recurrent
from schedc.weights.state import StateLayout, keeps_state, read_state, write_state

Words = Mapping[int, Mapping[str, np.ndarray]]
"""Device → name of a cache → its words int32[rows, 128]."""


@dataclass(frozen=True)
class Caches:
    """`capacity` is the context, rounded up to whole tiles."""

    spec: ModelSpec
    shape: StepShape
    capacity: int
    tile: int = 0
    """Tokens of a tile, where devices have them in turn or a cache is a ring."""
    table: np.ndarray | None = None
    """Of a paged cache the page of every tile of every sequence, int[rows, tiles]: of a device, where they have the
    tiles in turn."""

    def name(self, at: LayerAt) -> str:
        """The kernel's name for the cache of one place of the pattern of one run."""
        kind = "state" if keeps_state(at.block.mixer) else "kv"
        single = len(self.spec.layers) == 1 and len(self.spec.layers[0].pattern) == 1
        return kind if single else f"{kind}_{at.run}_{at.place}"

    def layout(self, at: LayerAt) -> CacheLayout:
        """Of the heads of all devices."""
        layers = self.spec.layers[at.run].repeat
        layout = cache_layout(at.block.mixer, layers, self.shape.sequences, self.capacity, self.spec.kv.dtype)
        tokens = self.spec.kv.page_tokens
        return (
            layout
            if tokens is None
            else replace(layout, page_tokens=tokens, pages=self.shape.page_count(tokens, self._sharing(at)))
        )

    def device_layout(self, at: LayerAt) -> CacheLayout:
        whole, sharing = self.layout(at), self._sharing(at)
        capacity = whole.capacity
        if sharing > 1:
            capacity = -(-capacity // (sharing * self.tile)) * self.tile
        return replace(
            whole, heads=self._split(at).each, capacity=capacity, ring_tokens=self.ring_tokens().get(at.layer, 0)
        )

    def ring_tokens(self) -> dict[int, int]:
        """Layers whose caches are rings, with the tokens that those have room for."""
        sizes = {
            at.layer: ring_tokens(self.spec, at.block.mixer, self.shape.context, self.tile)
            for at in self.spec.iter_layers()
            if isinstance(at.block.mixer, Gqa)
        }
        return {layer: tokens for layer, tokens in sizes.items() if tokens}

    def _sharing(self, at: LayerAt) -> int:
        """Tile t of a sequence lies on device t mod so many neighbours alone."""
        return sharing_devices(at.block.mixer, self.shape.devices, self.shape.placement)

    def _tokens_of(self, at: LayerAt, device: int, tokens: int) -> np.ndarray:
        """Which of a sequence's tokens a device has, in its order."""
        every, sharing = np.arange(tokens), self._sharing(at)
        return every[every // self.tile % sharing == device % sharing] if sharing > 1 else every

    def device_layouts(self) -> dict[str, CacheLayout | StateLayout]:
        """By the kernel's names."""
        return {
            self.name(at): self.states(at).of_device if keeps_state(at.block.mixer) else self.device_layout(at)
            for at in self.spec.iter_layers()
        }

    def states(self, at: LayerAt) -> States:
        """Of a layer that keeps a state."""
        mixer = at.block.mixer
        assert isinstance(mixer, Kda | GatedDelta)
        return States(mixer, self.spec.layers[at.run].repeat, self.shape)

    def fill(self, words: Words, row: int, layers: Sequence[Kept]) -> None:
        """Write what is kept of a sequence's tokens in every layer at the beginning of row `row`, in place."""
        for at, kept in zip(self.spec.iter_layers(), layers, strict=True):
            if isinstance(kept, Recurrent):
                states = self.states(at)
                for device, own in words.items():
                    write_state(own[self.name(at)], states.of_device, at.trip, row, states.part(kept, device))
                continue
            ordered, layout, split = kernel_cache(kept, at.block.mixer), self.device_layout(at), self._split(at)
            for device, caches in words.items():
                held = split.held(device)
                padding = ((0, 0), (0, split.each - len(held)), (0, 0))
                tokens = self._tokens_of(at, device, len(ordered[0]))
                mine = [np.pad(side[tokens, held.start : held.stop], padding) for side in ordered]
                write_sequence(caches[self.name(at)], layout, at.trip, row, mine, self.table)

    def read(self, words: Words, copy: Literal["first", "last"] = "first") -> list[Kept]:
        """What is kept in every layer, f32[rows, capacity, heads, width] a side, in the kernel's order of dimensions,
        or a `Recurrent` of f32[states, …]: of every row, or of every place of the ring.

        Of a head that several devices keep, that of the first or of the last of them.
        """
        devices = sorted(words, reverse=copy == "first")  # The last one that is written stays.
        return [self._layer({device: words[device] for device in devices}, at) for at in self.spec.iter_layers()]

    def _layer(self, words: Words, at: LayerAt) -> Kept:
        if keeps_state(at.block.mixer):
            return self._states(words, at)
        whole, layout, split = self.layout(at), self.device_layout(at), self._split(at)
        sides = tuple(
            np.zeros((whole.rows, whole.capacity, whole.heads, side.width), np.float32) for side in whole.sides
        )
        for device, caches in words.items():
            held = split.held(device)
            for row in range(whole.rows):
                mine = read_sequence(caches[self.name(at)], layout, at.trip, row, layout.capacity, self.table)
                tokens = self._tokens_of(at, device, whole.capacity)
                for side, part in zip(sides, mine, strict=True):
                    side[row][tokens, held.start : held.stop] = part[: len(tokens), : len(held)]
        return sides

    def _states(self, words: Words, at: LayerAt) -> Recurrent:
        states = self.states(at)
        found = [states.empty() for _ in range(self.shape.kept_states)]
        for device, own in words.items():
            for row, whole in enumerate(found):
                states.put(whole, read_state(own[self.name(at)], states.of_device, at.trip, row), device)
        return Recurrent(*(np.stack(parts) for parts in zip(*found, strict=True)))

    def _split(self, at: LayerAt) -> Split:
        return cached_heads(at.block.mixer, self.shape.devices, self.shape.placement)

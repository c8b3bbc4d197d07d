"""Random programs of devices that have the tiles of sequences in turn and attend to those in sight: safe by about half.

Which tiles are in sight (a window, a chunk, or all before the newest token's), and how many, follows from the position,
so trip counts are differences of quotients. Slots, how far tiles are fetched ahead, guards, and the tile that is
written back are drawn at random, some of them wrong by one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

_ROWS = 8
"""Of a tile of one sequence, however many tokens it has."""

_TEXT = """program windows {{
  devices {devices}
  pool work rows={work}
  buffer old in work rows={slot} slots={slots} align=8 at 0
  buffer new in work rows={slot} slots=1 align=8 at {new_at}
  buffer x in work rows=8 slots=1 align=8 at {x_at}
  hbm kv rows={kv} state
  smem position[{sequences}] in 0..{last} input
  smem active[{sequences}] in 0..1 input
  smem first[{sequences}] in 0..{tiles} local
  smem full[{sequences}] in -{tiles}..{tiles} local
  semaphore arrived[{semaphores}] dma
  semaphore opened[{sequences}] dma
  semaphore written[{sequences}] dma
  compute zero(out: write x[0 +: 8])
  compute zero(out: write new[0 +: {slot}])
{zero}
  loop r < {sequences} unroll {{
    set first[r] = {first}
    set full[r] = min({own} - first[r], active[r] * {tiles})
  }}
  loop l < {layers} {{
    loop r < {sequences} unroll {{
{fetches}
      when active[r] > 0 and position[r] // {tokens} % {devices} == rank {{
        start kv[{there} +: 8] -> new[r * 8 +: 8] signals opened[r]
        wait opened[r] rows=8
      }}
    }}
    compute attend(kv: read new[0 +: {slot}], x: update x[0 +: 8])
    loop t < {trips} {{
      loop r < {sequences} unroll {{
        when t + {ahead} {less} full[r] {{
          start kv[{base} + (first[r] + (t + {ahead})) * 8 +: 8] -> old<(t + {ahead}) % {slots}>[r * 8 +: 8]
            signals arrived[(t + {ahead}) % {turns} * {sequences} + r]
        }}
      }}
      loop r < {sequences} unroll {{
        when t < full[r] {{
          wait arrived[t % {turns} * {sequences} + r] rows=8
        }}
      }}
      compute attend(kv: read old<t % {slots}>[0 +: {slot}], x: update x[0 +: 8])
    }}
    loop r < {sequences} unroll {{
      when active[r] > 0 and position[r] // {tokens} % {devices} == rank {{
        start new[r * 8 +: 8] -> kv[{back} +: 8] signals written[r]
        wait written[r] rows=8
      }}
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Windows:
    """What is right if nothing but sizes is said."""

    devices: int
    sequences: int
    tokens: int
    """Of a tile."""
    tiles: int
    """Of a sequence on each device."""
    sight: str = ""
    """The first tile in sight, as an expression; that of the sequence if empty."""
    layers: int = 1
    ahead: int = 1
    """Tiles that are fetched before the one that is attended to."""
    more_slots: int = 0
    more_tokens: int = 0
    first_shift: int = 0
    own_shift: int = 0
    """Of the device, in the turn of tiles, as it counts those before the sight, and before the newest token."""
    less: str = "<"
    trips: str = ""
    back: str = ""
    """The first row that is written back."""

    def text(self) -> str:
        """The program in the text form."""
        devices, sequences, tokens, ahead, tiles = self.devices, self.sequences, self.tokens, self.ahead, self.tiles
        slots, rows = ahead + 1 + self.more_slots, sequences * _ROWS
        base = self.base()
        there = f"{base} + position[r] // {tokens * devices} * 8"
        fetches = "\n".join(
            f"when {k} < full[r] {{\nstart kv[{base} + (first[r] + {k}) * 8 +: 8] -> old<{k % slots}>[r * 8 +: 8] "
            f"signals arrived[{k % (ahead + 1) * sequences} + r]\n}}"
            for k in range(ahead)
        )
        return _TEXT.format(
            devices=devices,
            sequences=sequences,
            layers=self.layers,
            tokens=tokens,
            tiles=tiles,
            ahead=ahead,
            slots=slots,
            slot=rows,
            turns=ahead + 1,
            semaphores=(ahead + 1) * sequences,
            last=devices * tiles * tokens - 1 + self.more_tokens,
            kv=self.layers * sequences * tiles * _ROWS,
            work=rows * (slots + 1) + 8,
            new_at=rows * slots,
            x_at=rows * (slots + 1),
            zero="\n".join(f"  compute zero(out: write old<{slot}>[0 +: {rows}])" for slot in range(slots)),
            first=self._own(self.sight, self.first_shift) if self.sight else "0",
            own=self._own(f"position[r] // {tokens}", self.own_shift),
            fetches=fetches,
            base=base,
            there=there,
            less=self.less,
            trips=self.trips or f"max({', '.join(f'full[{r}]' for r in range(sequences))}, 0)",
            back=self.back or there,
        )

    def base(self) -> str:
        return f"l * {self.sequences * self.tiles * _ROWS} + r * {self.tiles * _ROWS}"

    def _own(self, tile: str, shift: int) -> str:
        """How many of the tiles before this one are the device's."""
        return f"({tile} + ({self.devices - 1 + shift} - rank)) // {self.devices}"


def window(tokens: int, width: int) -> str:
    """The first tile in sight of the newest token if it sees `width`, itself included."""
    return f"max(position[r] - {width - 1}, 0) // {tokens}"


def chunk(tokens: int, tiles: int) -> str:
    """The first tile in sight of the newest token if it sees its chunk of so many tiles."""
    return f"position[r] // {tiles * tokens} * {tiles}"


def random_windows(seed: int) -> str:
    """A program in the text form."""
    rng = random.Random(seed)

    def wrong() -> bool:
        return rng.random() < 0.15

    devices, sequences, tokens = rng.choice((1, 2, 2, 3, 4)), rng.choice((1, 1, 2)), rng.choice((2, 4, 8))
    right = Windows(
        devices,
        sequences,
        tokens,
        tiles=rng.choice((2, 3, 4, 6)),
        layers=rng.choice((1, 2)),
        ahead=rng.choice((1, 1, 2)),
        sight=rng.choice(
            (
                window(tokens, rng.choice((1, tokens, tokens + 1, 3 * tokens - 1, 5 * tokens))),
                window(tokens, rng.choice((2 * tokens, 4 * tokens - 1))),
                chunk(tokens, rng.choice((1, 2, 4))),
                "",
            )
        ),
    )
    other_trips = (f"max(full[{sequences - 1}], 0)", f"max({', '.join(f'full[{r}]' for r in range(sequences))}, 1)")
    before = f"{right.base()} + max(position[r] - 1, 0) // {tokens * devices} * 8"
    return replace(
        right,
        more_slots=rng.choice((-1, 1)) if wrong() else 0,
        more_tokens=tokens if wrong() else 0,
        first_shift=int(wrong()),
        own_shift=int(wrong()),
        less="<=" if wrong() else "<",
        trips=rng.choice(other_trips) if wrong() else "",
        back=before if wrong() else "",
    ).text()

"""Random programs whose loop over layers fetches what a computation chose: safe by about half.

Every layer chooses numbers, fetches the rows that they say under guards on them, uses these in a loop of that many
trips, and does some things in every second, third or fourth layer only. Slots, semaphores, guards and offsets are drawn
at random, values are carried from one layer to the next, and some operations are out of place or missing.
"""

from __future__ import annotations

import random

DECLARATIONS = """program experts {{
  devices {devices}
  pool work rows=72
  pool peers rows=48
  buffer x in work rows=8 slots=2 align=8 at 0
  buffer tile in work rows=8 slots={slots} align=8 at 16
  buffer y in work rows=8 slots=1 align=8 at {y_at}
  buffer z in work rows=8 slots=1 align=8 at 56
  buffer inbox in peers rows={inbox} slots=2 align=8 at 0
  hbm w rows={weights} weight
  hbm kv rows=64 state
  smem on[1] in 0..1 input
  smem m[4] in 0..3 local
  smem count[1] in 0..{most} local
  smem kept[2] in 0..3 local
  table order = {order}
  semaphore a[{slots}] dma
  semaphore k[2] dma
  semaphore s[2] dma
  semaphore t[2] dma
"""


def random_experts(seed: int, trips: int = 8) -> str:
    """A program in the text form; the loop has `trips` to `trips` + 3 trips."""
    return _Writer(random.Random(seed), trips).program()


class _Writer:
    def __init__(self, rng: random.Random, trips: int) -> None:
        self._random = rng
        self._devices = rng.choice((1, 1, 2, 2, 3))
        self._trips = trips + rng.randint(0, 3)
        self._slots = rng.choice((1, 2, 2, 3))
        self._most = rng.choice((2, 3, 4))
        self._every = rng.choice((2, 3, 4))

    def program(self) -> str:
        rng = self._random
        repeats = rng.choice((1, 2, 3))
        order = [(i % repeats) % 2 for i in range(self._trips)]
        if rng.random() < 0.3:
            order[-1] = 1 - order[-1]
        head = DECLARATIONS.format(
            devices=self._devices,
            slots=self._slots,
            y_at=rng.choice((40, 40, 40, 40, 16)),
            inbox=8 * self._devices,
            weights=(4 * self._trips + (0 if rng.random() < 0.1 else 4)) * 8,
            most=self._most,
            order=", ".join(map(str, order)),
        )
        lines = [head.rstrip("\n")]
        lines += [f"compute zero(out: write x<{slot}>[0 +: 8])" for slot in range(2)]
        lines += [f"compute zero(out: write tile<{slot}>[0 +: 8])" for slot in range(self._slots)]
        lines += ["compute zero(out: write y[0 +: 8])", "compute zero(out: write z[0 +: 8])"]
        lines += [f"compute zero(out: write inbox<{slot}>[0 +: {8 * self._devices}])" for slot in range(2)]
        lines += ["set kept[0] = 0", "set kept[1] = 1", "compute choose() sets m=m, count=count"]
        if rng.random() < 0.9:
            lines.append("barrier")
        lines += [f"loop l < {self._trips} {{", *self._layer(), "}"]
        if rng.random() < 0.4:
            lines.append(f"compute use(x: read tile<{rng.randrange(self._slots)}>[0 +: 8], y: update y[0 +: 8])")
        return "\n".join([*lines, "}", ""])

    def _layer(self) -> list[str]:
        rng = self._random
        parts = [self._experts]
        if rng.random() < 0.6:
            parts.append(self._cache)
        if rng.random() < 0.5:
            parts.append(self._sometimes)
        if rng.random() < 0.5:
            parts.append(self._guarded_rows)
        if self._devices > 1 and rng.random() < 0.8:
            parts.append(self._exchange)
        rng.shuffle(parts)
        ops = [op for part in parts for op in part()]
        choose = ["compute choose() sets m=m, count=count"]
        if rng.random() < 0.4:
            keep = f"set kept[{rng.randint(0, 1)}] = m[{rng.randint(0, 3)}]"
            choose.insert(rng.randint(0, 1), keep if rng.random() < 0.7 else f"when on[0] > 0 {{\n{keep}\n}}")
        ops = choose + ops if rng.random() < 0.85 else ops + choose
        if rng.random() < 0.15:
            i = rng.randrange(len(ops))
            j = min(i + rng.randint(1, 2), len(ops) - 1)
            ops[i], ops[j] = ops[j], ops[i]
        if rng.random() < 0.15:
            del ops[rng.randrange(len(ops))]
        return ops

    def _experts(self) -> list[str]:
        """As many fetches in flight as there are slots, and a loop over what was chosen."""
        rng, slots = self._random, self._slots
        number = rng.choice(("m[{}]", "m[{}]", "m[{}]", "min(m[{}] + 1, 3)", "m[0]"))

        def fetch(e: str, slot: str, guard: str) -> str:
            which = number.format(e if self._most <= 4 and not e.startswith("e") else f"min({e}, 3)")
            start = f"start w[(l * 4 + {which}) * 8 +: 8] -> tile<{slot}>[0 +: 8] signals a[{slot}]"
            return f"when {guard} {{\n{start}\n}}"

        ops = [fetch(str(i), str(i), f"{i} < count[0]") for i in range(slots)]
        ahead = slots if rng.random() < 0.9 else rng.choice((1, 2, 3))
        turn = f"e % {slots}"
        body = [f"wait a[{turn}] rows=8", f"compute use(x: read tile<{turn}>[0 +: 8], y: update y[0 +: 8])"]
        if rng.random() < 0.15:
            body.reverse()
        body.append(fetch(f"e + {ahead}", f"(e + {ahead}) % {slots}", f"e + {ahead} < count[0]"))
        trips = "count[0]" if rng.random() < 0.9 else rng.choice(("m[0]", "min(count[0], 2)"))
        return [*ops, "\n".join([f"loop e < {trips} {{", *body, "}"])]

    def _cache(self) -> list[str]:
        """Rows that were chosen are written back, and waited for in this layer or the next."""
        rng = self._random
        row = rng.choice(("m[1] * 8", "m[1] * 8", "kept[0] * 8", "(m[1] + l % 2 * 4) * 8", "l % 8 * 8"))
        back = row if rng.random() < 0.8 else rng.choice(("m[2] * 8", "kept[1] * 8", "l % 2 * 32 + m[1] * 8"))
        slot = rng.choice(("0", "l % 2"))
        load = [f"start kv[{row} +: 8] -> x<{slot}>[0 +: 8] signals k[0]", "wait k[0] rows=8"]
        use = [f"compute use(x: update x<{slot}>[0 +: 8])"]
        store = f"start x<{slot}>[0 +: 8] -> kv[{back} +: 8] signals k[1]"
        if rng.random() < 0.3:
            guard = rng.choice(("m[3] > 1", "on[0] == 1", f"l % {self._every} == 0"))
            return [*load, *use, f"when {guard} {{\n{store}\nwait k[1] rows=8\n}}"]
        if rng.random() < 0.6:
            return [*load, *use, store, "wait k[1] rows=8"]
        last = f"when l == {self._trips - 1} {{\nwait k[1] rows=8\n}}"
        return ["when l > 0 {\nwait k[1] rows=8\n}", *load, *use, store, last]

    def _sometimes(self) -> list[str]:
        """What is done in some layers only."""
        rng = self._random
        every = self._every
        last, begin = f"l % {every} == {every - 1}", f"l % {every} == 0"
        first = rng.choice((last, begin, "order[l] == 1", f"l // {every} % 2 == 0"))
        second = first if rng.random() < 0.7 else rng.choice((begin, "order[l] == 0"))
        start = f"start w[l * 8 +: 8] -> z[0 +: 8] signals s[{rng.randint(0, 1)}]"
        wait = start.rsplit(" ", 1)[1]
        use = "compute use(x: read z[0 +: 8], y: update y[0 +: 8])"
        if rng.random() < 0.3:
            return [
                f"switch order[l] {{\ncase 0 {{\n{start}\nwait {wait} rows=8\n}}\ncase 1 {{\n{use}\n}}\n}}",
            ]
        return [f"when {first} {{\n{start}\n}}", f"when {second} {{\nwait {wait} rows=8\n}}", use]

    def _guarded_rows(self) -> list[str]:
        """Rows of one pool place that are written and read under conditions on what was chosen."""
        rng = self._random
        guard = rng.choice(("m[2] > 1", "m[2] > 0", "count[0] > 1"))
        other = guard if rng.random() < 0.7 else rng.choice(("m[2] > 1", "kept[0] > 1"))
        write = f"when {guard} {{\ncompute use(x: read x<0>[0 +: 8], y: write y[0 +: 8])\n}}"
        read = f"when {other} {{\ncompute use(x: read y[0 +: 8], y: update x<1>[0 +: 8])\n}}"
        return [write, read] if rng.random() < 0.8 else [read, write]

    def _exchange(self) -> list[str]:
        rng, devices = self._random, self._devices
        slot = rng.choice(("l % 2", "l % 2", "0"))
        peer = f"(rank + {rng.randint(1, devices - 1)}) % {devices}"
        ops = [
            f"remote.start x<0>[0 +: 8] -> inbox<{slot}>[rank * 8 +: 8] on {peer} sent s[{slot}] signals t[{slot}]",
            f"wait t[{slot}] rows=8",
            f"compute use(x: read inbox<{slot}>[0 +: {8 * devices}], y: update y[0 +: 8])",
            f"wait s[{slot}] rows=8",
        ]
        if rng.random() < 0.5:
            ops.append("barrier")
        if rng.random() < 0.1:
            ops = ["\n".join([f"when {rng.choice(('on[0] == 1', 'l % 3 != 1'))} {{", *ops, "}"])]
        return ops

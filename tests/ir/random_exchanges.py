"""Random programs in which devices exchange rows in every iteration of a loop: safe by about half.

Each is one of a few exchanges (to one peer, to all, round a ring, in pairs), with slots, semaphores, waits and credits
drawn at random, some operations out of place or missing, and a local transfer ahead.
"""

from __future__ import annotations

import random

DECLARATIONS = """program exchanges {{
  devices {devices}
  pool work rows=56
  pool peers rows={inbox}
  buffer x in work rows=8 slots=2 align=8 at 0
  buffer tile in work rows=8 slots=3 align=8 at 16
  buffer y in {y}
  buffer inbox in peers rows={rows} slots={slots} align=8 at 0
  hbm w rows=128 weight
  smem on[1] in 0..1 input
  smem n[1] in 0..3 input
  smem m[2] in 0..3 local
  semaphore s[3] dma
  semaphore t[3] dma
  semaphore a[3] dma
  semaphore g[1] regular
"""


def random_exchange(seed: int, trips: int = 7) -> str:
    """A program in the text form; the loop has about `trips` or twice as many trips."""
    return _Writer(random.Random(seed), trips).program()


class _Writer:
    def __init__(self, rng: random.Random, trips: int) -> None:
        self._random = rng
        self.devices = rng.choice((2, 2, 3, 4))
        self._trips = rng.choice((trips, 2 * trips)) + rng.randint(0, 3)
        self._slots = rng.choice((1, 2, 2, 2, 3))
        self._exchanges = rng.choice((1, 1, 2))
        self._to_all = rng.random() < 0.5
        self._places = self.devices if self._to_all or rng.random() < 0.3 else 1

    def program(self) -> str:
        rng, slots = self._random, self._slots
        rows = 8 * self._places
        y = "work rows=8 slots=1 align=8 at 40"
        if rng.random() < 0.2:
            y = f"peers rows=8 slots=1 align=8 at {rng.choice((0, 8, rows * slots - 8))}"
        head = DECLARATIONS.format(devices=self.devices, inbox=rows * slots + 8, y=y, rows=rows, slots=slots)
        lines = [head.rstrip("\n")]
        lines += [f"compute zero(out: write x<{slot}>[0 +: 8])" for slot in range(2)]
        lines += [f"compute zero(out: write tile<{slot}>[0 +: 8])" for slot in range(3)]
        lines += [f"compute zero(out: write inbox<{slot}>[0 +: {rows}])" for slot in range(slots)]
        lines += ["compute zero(out: write y[0 +: 8])", "compute choose() sets values=m"]
        ahead = rng.choice((0, 1, 1, 2))
        if rng.random() < 0.9:
            lines.append("barrier")
        lines += [f"start w[{8 * i} +: 8] -> tile<{i}>[0 +: 8] signals a[{i}]" for i in range(ahead)]
        lines += [f"loop l < {self._trips} {{", *self._iteration(ahead), "}"]
        if rng.random() < 0.3:
            lines += ["compute use(x: read inbox<0>[0 +: 8], y: update y[0 +: 8])"]
        return "\n".join([*lines, "}", ""])

    def _iteration(self, ahead: int) -> list[str]:
        rng = self._random
        exchanges = [op for number in range(self._exchanges) for op in self._exchange(number)]
        others = []
        if ahead:
            read = f"compute use(x: read tile<l % {ahead + 1}>[0 +: 8])"
            later = f"start w[l * 8 +: 8] -> tile<(l + {ahead}) % {ahead + 1}>[0 +: 8] signals a[(l + {ahead}) % 3]"
            others += [f"when l + {ahead} < {self._trips} {{\n{later}\n}}", "wait a[l % 3] rows=8", read]
        if rng.random() < 0.3:
            others += ["compute choose() sets values=m", "when m[0] > 1 {\ncompute use(x: update y[0 +: 8])\n}"]
        if rng.random() < 0.3:
            others += ["loop e < m[1] {\ncompute use(x: read tile<0>[0 +: 8], y: update y[0 +: 8])\n}"]
        ops = exchanges
        for shift, place in enumerate(sorted(rng.randint(0, len(ops)) for _ in others)):
            ops.insert(place + shift, others[shift])
        for _ in range(rng.choice((0, 0, 0, 1, 2)) if ops else 0):
            i = rng.randrange(len(ops))
            j = min(i + rng.randint(0, 2), len(ops) - 1)
            ops[i], ops[j] = ops[j], ops[i]
        if ops and rng.random() < 0.1:
            del ops[rng.randrange(len(ops))]
        if rng.random() < 0.3:
            region = rng.choice(("tile<rank % 3>", "tile<(rank + 1) % 3>", "x<rank % 2>", "x<(rank + 1) % 2>"))
            access = rng.choice(("read", "update"))
            ops.insert(rng.randint(0, len(ops)), f"compute use(x: {access} {region}[0 +: 8])")
        if ops and rng.random() < 0.3:
            self._later_on_some(ops)
        return ops

    def _later_on_some(self, ops: list[str]) -> None:
        """An operation stands in one place on some devices and behind a later one on the others."""
        rng = self._random
        here = rng.randrange(len(ops))
        later = rng.randint(here, min(here + 3, len(ops) - 1))
        one, two = rng.choice((("rank == 1", "rank != 1"), ("rank < 2", "rank >= 2"), ("rank != 0", "rank == 0")))
        op = ops[here]
        ops.insert(later + 1, f"when {two} {{\n{op}\n}}")
        ops[here] = f"when {one} {{\n{op}\n}}"

    def _exchange(self, number: int) -> list[str]:
        rng, devices = self._random, self.devices
        count = self._exchanges
        turn = f"({count} * l + {number}) % {self._slots}"
        if rng.random() < 0.2:
            turn = rng.choice((f"l % {self._slots}", f"(l + {number}) % {self._slots}", "0"))
        slot, back = turn, turn if rng.random() < 0.9 else "0"
        source = rng.choice(("x<0>", "x<l % 2>", f"x<{number % 2}>"))
        sent = rng.choice(("s[0]", f"s[{number}]", *[f"s[{turn}]"] * 3))
        arrived = rng.choice(("t[0]", f"t[{number}]", *[f"t[{turn}]"] * 8))
        place = "0" if self._places == 1 else "rank * 8"
        if self._places > 1 and rng.random() < 0.2:
            place = rng.choice((f"(rank + 1) % {devices} * 8", "rank // 2 * 8", "min(rank, 1) * 8"))
        peer = f"(rank + {rng.randint(1, devices - 1)}) % {devices}"
        if devices != 3 and rng.random() < 0.3:
            peer = "rank ^ 1"
        target = f"inbox<{slot}>[{place} +: 8]"
        if self._to_all:
            peer = f"(rank + d + 1) % {devices}"
        send = f"remote.start {source}[0 +: 8] -> {target} on {peer} sent {sent} signals {arrived}"
        rows = 8
        if self._to_all:
            send = f"loop d < {devices - 1} unroll {{\n{send}\n}}"
            rows = 8 * (devices - 1)
        made = f"compute use(x: update {source}[0 +: 8])"
        read = f"compute use(x: read inbox<{back}>[0 +: {8 * self._places}], y: update {source}[0 +: 8])"
        if self._to_all and rng.random() < 0.6:
            made += f"\ncompute use(x: read {source}[0 +: 8], y: write inbox<{slot}>[{place} +: 8])"
        if self._places > 1 and rng.random() < 0.4:
            part = rng.choice(("rank * 8", f"(rank + 1) % {devices} * 8", "0", "8"))
            read = read.replace(f"[0 +: {8 * self._places}]", f"[{part} +: 8]")
        ops = [made, send, f"wait {arrived} rows={rows}", f"wait {sent} rows={rows}", read]
        if rng.random() < 0.3:
            ops[3:] = [ops[4].replace(f"y: update {source}", "y: update y"), ops[3]]
        after = rng.random()
        if after < 0.35:
            ops.append("barrier")
        elif after < 0.4:
            ops.append("when l % 2 == 0 {\nbarrier\n}")
        elif after < 0.5:
            back_to = f"(rank + {devices - 1}) % {devices}"
            ops += [f"signal g amount=1 on {back_to}", "await g amount=1"]
        if rng.random() < 0.1:
            ops = ["\n".join([f"when {rng.choice(('n[0] > 1', 'on[0] == 1'))} {{", *ops, "}"])]
        return ops

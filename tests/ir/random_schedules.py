"""Random programs that mean something: starts with their waits, in random places, on one to three devices.

Unlike mutants they come from no correct program, so about half of them are safe by chance.
"""

from __future__ import annotations

import random

DECLARATIONS = """program random {{
  devices {devices}
  pool work rows=40
  buffer a in work rows=8 slots=2 align=8 at 0
  buffer b in work rows=8 slots=1 align=8 at 16
  buffer c in work rows=8 slots=2 align=8 at {c_at}
  hbm w rows=64 weight
  hbm kv rows=64 state
  smem on[2] in 0..1 input
  smem n[2] in 0..3 input
  semaphore s[2] dma
  semaphore t[2] dma
  semaphore g[1] regular
"""
SLOTS = {"a": 2, "b": 1, "c": 2}


def random_schedule(seed: int) -> str:
    """A program in the text form."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self._devices = rng.choice((1, 1, 2, 2, 3))

    def program(self) -> str:
        body = self._block(None, 0)
        slots = [f"{name}<{slot}>" for name, count in SLOTS.items() for slot in range(count)]
        first = [f"compute zero(out: write {slot}[0 +: 8])" for slot in slots]
        entry = ["barrier"] if self._random.random() < 0.85 else []
        c_at = self._random.choice((24, 24, 24, 16))
        return "\n".join([DECLARATIONS.format(devices=self._devices, c_at=c_at), *first, *entry, *body, "}", ""])

    def _block(self, counter: str | None, depth: int) -> list[str]:
        rng = self._random
        ops: list[str] = []
        for _ in range(rng.randint(1, 4)):
            kind = rng.random()
            if kind < 0.35:
                self._scatter(ops, self._transfer(counter))
            elif kind < 0.75:
                access = rng.choice(("read", "read", "update", "write"))
                self._scatter(ops, [f"compute use(x: {access} {self._region(counter)})"])
            elif kind < 0.83 and self._devices > 1:
                self._scatter(ops, ["barrier"])
            elif kind < 0.9 and self._devices > 1:
                self._scatter(ops, [f"signal g amount=1 on (rank + 1) % {self._devices}", "await g amount=1"])
            elif kind > 0.95 and depth < 2:
                inner = ("l", "t")[depth]
                trips = rng.choice(("2", "3", "n[0]", "n[1]"))
                ops += [f"loop {inner} < {trips} {{", *self._block(inner, depth + 1), "}"]
            elif depth < 2:
                ops += [f"when {self._condition(counter)} {{", *self._block(counter, depth + 1), "}"]
        return ops

    def _scatter(self, ops: list[str], new: list[str]) -> None:
        """Put the new operations in their order into random places, but not into other blocks."""
        free = [i for i in range(len(ops) + 1) if sum(o.endswith("{") for o in ops[:i]) == ops[:i].count("}")]
        places = sorted(self._random.choice(free) for _ in new)
        for shift, (place, op) in enumerate(zip(places, new, strict=True)):
            ops.insert(place + shift, op)

    def _transfer(self, counter: str | None) -> list[str]:
        rng = self._random
        source, target = self._region(counter), self._region(counter)
        local, remote = self._semaphore(counter, "s"), self._semaphore(counter, "t")
        if rng.random() < 0.5:
            source = f"w[{rng.choice(('0', '8', 'n[0] * 8'))} +: 8]"
        elif rng.random() < 0.2:
            target = f"kv[{rng.choice(('0', '8', 'n[0] * 8'))} +: 8]"
        if self._devices > 1 and rng.random() < 0.6:
            peer = f"(rank + 1) % {self._devices}"
            start = f"remote.start {source} -> {target} on {peer} sent {local} signals {remote}"
            return [start, f"wait {local} rows=8", f"wait {remote} rows=8"]
        return [f"start {source} -> {target} signals {local}", f"wait {local} rows=8"]

    def _region(self, counter: str | None) -> str:
        name = self._random.choice(sorted(SLOTS))
        slots = ["0"] if SLOTS[name] == 1 else ["0", "1"]
        if counter and SLOTS[name] == 2:
            slots += [f"{counter} % 2", f"({counter} + 1) % 2"]
        return f"{name}<{self._random.choice(slots)}>[0 +: 8]"

    def _semaphore(self, counter: str | None, name: str) -> str:
        return f"{name}[{self._random.choice(['0', '1', *([f'{counter} % 2'] if counter else [])])}]"

    def _condition(self, counter: str | None) -> str:
        conditions = ["on[0] == 1", "on[1] == 0", "n[0] > 1"]
        if self._devices > 1:
            conditions += ["rank == 0", "rank < 2"]
        if counter:
            conditions += [f"{counter} > 0", f"{counter} + 1 < n[0]", f"{counter} % 2 == 0"]
        return self._random.choice(conditions)

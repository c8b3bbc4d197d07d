"""Random programs that are proven with every buffer at rows of its own are proven with the rows that they share."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from schedc.ir.allocate import allocate
from schedc.ir.execute import execute
from schedc.ir.live import live_ranges
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 20, smem_bytes=1 << 16, semaphores=64)
NAMES = ("a", "b", "c", "d", "e", "f")
BATCHES, EACH = 10, 150


class Writer:
    """Writes of whole buffers and of halves, reads, updates, transfers both ways, in nested blocks."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self._devices = rng.choice((1, 1, 1, 2))
        self._transfers = 0
        self._counters = 0

    def program(self) -> str:
        written: set[str] = set()
        body = self._block(written, 0)
        enter = ["barrier"] if self._devices > 1 else []
        lines = [
            "program random {",
            f"devices {self._devices}",
            "pool v rows=0",
            *(f"buffer {name} in v rows=8 slots=1 align=8" for name in NAMES),
            "buffer inbox in v rows=8 slots=1 align=8",
            "hbm w rows=64 weight",
            "hbm out rows=512 state",
            "smem n[2] in 0..2 input",
            *(f"semaphore s{i} dma" for i in range(self._transfers)),
            *enter,
            *body,
        ]
        return "\n".join([*lines, "}"])

    def _block(self, written: set[str], depth: int) -> list[str]:
        rng = self._random
        ops: list[str] = []
        for _ in range(rng.randint(3, 8) if depth == 0 else rng.randint(2, 4)):
            kind = rng.random()
            name = rng.choice(NAMES)
            old = rng.choice(sorted(written)) if written else name
            if kind < 0.3:
                written.add(name)
                ops.append(f"compute k(o: write {name}[0 +: 8])")
            elif kind < 0.35:
                written.add(name)
                ops += [f"compute k(o: write {name}[0 +: 4])", f"compute k(o: write {name}[4 +: 4])"]
            elif kind < 0.4:
                written.add(name)
                counter = self._counter()
                ops += [f"loop {counter} < 2 {{", f"compute k(o: write {name}[{counter} * 4 +: 4])", "}"]
            elif kind < 0.6:
                ops.append(f"compute k(x: read {old}[0 +: 8])")
            elif kind < 0.65:
                ops.append(f"compute k(x: update {old}[0 +: {rng.choice((4, 8))}])")
            elif kind < 0.85 or depth > 1:
                self._transfer(ops, written, old)
            else:
                ops += self._nested(written, depth)
        return ops

    def _transfer(self, ops: list[str], written: set[str], old: str) -> None:
        """Start and wait at random places of the block, in this order or in the order of a loop's next iteration."""
        rng = self._random
        number, self._transfers = self._transfers, self._transfers + 1
        if self._devices > 1 and rng.random() < 0.5:
            number = self._transfers - 1
            self._transfers += 1
            start = f"remote.start {old}[0 +: 8] -> inbox[0 +: 8] on rank ^ 1 sent s{number} signals s{number + 1}"
            waits = [f"wait s{number} rows=8", f"wait s{number + 1} rows=8", *["barrier"] * rng.randint(0, 2)]
        elif rng.random() < 0.5:
            name = rng.choice(NAMES)
            written.add(name)
            start, waits = f"start w[0 +: 8] -> {name}[0 +: 8] signals s{number}", [f"wait s{number} rows=8"]
        else:
            start, waits = (
                f"start {old}[0 +: 8] -> out[{number * 8} +: 8] signals s{number}",
                [f"wait s{number} rows=8"],
            )
        at = rng.randint(self._top(ops), len(ops))
        ops.insert(at, start)
        for wait in waits:
            at = rng.randint(max(at + 1, self._top(ops)), len(ops))
            ops.insert(at, wait)

    def _top(self, ops: list[str]) -> int:
        """Behind the last nested block."""
        return max((i + 1 for i, line in enumerate(ops) if line == "}"), default=0)

    def _nested(self, written: set[str], depth: int) -> list[str]:
        rng = self._random
        kind = rng.random()
        if kind < 0.55:
            trips = rng.choice(("1", "2", "3", "n[0]", "n[1] + 1"))
            return [f"loop {self._counter()} < {trips} {{", *self._block(written, depth + 1), "}"]
        if kind < 0.75:
            return [f"when n[0] {rng.choice(('<', '=='))} 1 {{", *self._block(set(written), depth + 1), "}"]
        cases, all_written = [], None
        for value in range(3):
            inside = set(written)
            cases += [f"case {value} {{", *self._block(inside, depth + 1), "}"]
            all_written = inside if all_written is None else all_written & inside
        written |= all_written or set()
        return ["switch n[1] {", *cases, "}"]

    def _counter(self) -> str:
        self._counters += 1
        return f"l{self._counters}"


def apart(program: Program) -> Program:
    """Every buffer at rows of its own."""
    buffers = tuple(replace(buffer, address=8 * i) for i, buffer in enumerate(program.buffers))
    return replace(program, pools=(replace(program.pools[0], rows=8 * len(buffers)),), buffers=buffers)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_sharing_rows_keeps_the_proof_and_runs_without_a_fault(batch):
    proven = shared = cut = 0
    for seed in range(batch * EACH, (batch + 1) * EACH):
        text = Writer(random.Random(seed)).program()
        program = parse_program(text)
        if not verify(apart(program), LIMITS).proven:
            continue
        proven += 1
        packed = allocate(program, 1024)
        ranges = live_ranges(program)
        shared += packed.pools[0].rows < 8 * len(ranges)
        cut += any(len(live.spans) > 1 for live in ranges)
        verdict = verify(packed, LIMITS)
        assert verdict.proven, f"{verdict}\n{text}"
        for n in ([0, 0], [1, 1], [2, 2], [1, 2]):
            assert execute(packed, {"n": n}, seed) == [], text
    assert proven > EACH // 10
    assert shared > proven // 15
    assert cut > proven // 10

"""The passes of a compilation by name, and what a user may see of them: the program after each, its proof, its time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from schedc.compiler.refusals import prove
from schedc.ir.program import Program
from schedc.ir.text_print import print_program
from schedc.ir.verify import Limits

PASSES = {
    "schedule": "the model, in the order of the policy, as a program without addresses",
    "parse": "the file as a program",
    "allocate": "addresses for the buffers",
    "verify": "the proof",
    "emit": "the kernel",
    "predict": "the predicted step",
}
COMPILE_PASSES = ("schedule", "allocate", "verify", "emit", "predict")
CHECK_PASSES = ("parse", "allocate", "verify")
EMIT_PASSES = (*CHECK_PASSES, "emit")


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass
class Watch:
    """Looks at the passes of one compilation, as asked."""

    print_after: frozenset[str] = frozenset()
    verify_each: bool = False
    say: Callable[[str], None] = _to_stderr
    """Gets the program, in its text form, after each pass of `print_after`."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of each pass that has begun, and of the proofs of `verify_each` under names of their own."""

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = perf_counter() - began

    def after(
        self, name: str, program: Program, limits: Limits | None = None, lines: tuple[int, ...] | None = None
    ) -> None:
        """`limits` are given after a pass that made the program, not after one that reads it. Raises NotProven."""
        if name in self.print_after:
            self.say(f"# after {name}: {PASSES[name]}\n{print_program(program)}")
        if self.verify_each and limits is not None:
            with self.timed(f"verify after {name}"):
                prove(comparable(program), limits, lines, after=name)


def comparable(program: Program) -> Program:
    """With all addresses, or with none: to the proof, a buffer without address is a space of its own."""
    if all(buffer.address is not None for buffer in program.buffers):
        return program
    buffers = tuple(replace(buffer, address=None) for buffer in program.buffers)
    return replace(program, buffers=buffers)

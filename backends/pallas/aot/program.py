"""Read the program that the scheduler is given (the `original` dump): allocations, operands, loops; and its spills."""

import re

from .bundles import Bundle, line_of
from .report import Allocation, AllocationKind, Loop, Operand

SPILL = 4096  # bytes of a vector register, f32[8, 128]

_ALLOCATION = re.compile(
    r"^ *(?P<name>#allocation\d+) \[shape = '(?P<shape>[^']+)', space=(?P<space>\w+), size = (?P<size>0x[0-9a-f]+|\d+),"
    r"(?P<rest>.*), tag = '(?P<tag>[^']*)'\]",
    re.MULTILINE,
)
_OPERAND = re.compile(r"inlined_call_operand\.(?P<space>\S+|<[^>]+>) \[shape: (?P<shape>\S+), index: (?P<index>\d+),")
_LOOP = re.compile(
    r"^ *(?:loop: start=(?P<start>[^,\s]+), step=(?P<step>[^,\s]+), limit=(?P<limit>\S+)|// While loop)$", re.MULTILINE
)
_SPILL = re.compile(r"\[(?P<space>\w+):\[?(?P<name>#allocation\d+_spill)\]?")


def allocations_of(text: str) -> tuple[Allocation, ...]:
    """The memory of the kernel. Words at fixed addresses, which every program has, are left out."""
    return tuple(
        Allocation(found["name"], found["space"], found["shape"], int(found["size"], 0), _kind(found["tag"]))
        for found in _ALLOCATION.finditer(text)
        if "fixed_abs" not in found["rest"]
    )


def _kind(tag: str) -> AllocationKind:
    if tag == "scratch operand":
        return "scratch"
    if tag == "internal scratch":
        return "internal"
    return "window" if " window allocation " in tag else "other"


def spills_of(bundles: tuple[Bundle, ...]) -> tuple[Allocation, ...]:
    """Registers that the compiler had to keep in VMEM, one a name. They are known only after scheduling."""
    names = {
        found["name"]: found["space"]
        for bundle in bundles
        for operation in bundle.operations
        for found in _SPILL.finditer(operation)
    }
    return tuple(
        Allocation(name, space, "register", SPILL if space == "vmem" else 4, "spill") for name, space in names.items()
    )


def operands_of(text: str) -> tuple[Operand, ...]:
    """The operands of the kernel (inputs, then outputs), with the memory space that XLA put each into."""
    found = {int(match["index"]): match for match in _OPERAND.finditer(text)}
    return tuple(Operand(index, match["shape"], _space(match["space"])) for index, match in sorted(found.items()))


def _space(name: str) -> str:
    return "scalar" if name == "<no memory space>" else name


def loops_of(text: str, kernel_file: str) -> tuple[Loop, ...]:
    """The loops, in program order. The line is the one of the first located operation after the loop's head."""
    loops = []
    for found in _LOOP.finditer(text):
        line = next((line for row in text[found.end() :].splitlines() if (line := line_of(row, kernel_file))), 0)
        start, step, limit = (_number(found[name]) for name in ("start", "step", "limit"))
        loops.append(Loop(line, start, step, limit))
    return tuple(loops)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None

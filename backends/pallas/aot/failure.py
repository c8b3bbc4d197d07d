"""Say in one line why a kernel does not compile, and at which lines of its file.

The lines come from the frames of a Python traceback, else from the locations in the compiler's message:

    loc("get:"("get/get"(callsite("body"("/tmp/kernel.py":68:40 to :74) at "body"("/tmp/kernel.py":40:5 to :28)))))
"""

import dataclasses
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schedc.errors import CheckFailed

from .load import HELPERS

_LOCATION = re.compile(r'"(?P<file>[^"\n]+)":(?P<line>\d+):\d+')
_SCOPED = re.compile(r"Scoped allocation with size (\S+) and limit (\S+) exceeded scoped vmem limit by (\S+?)\. ")
_TOO_LARGE = re.compile(
    r"Allocation \(size=(?P<size>\d+)\) would exceed memory \(size=(?P<limit>\d+)\) :: \S+ \[shape = '(?P<shape>[^'{]+)"
    r"[^']*', space=(?P<space>\w+)"
)
_NOISE = (
    re.compile(r"^(INTERNAL|UNIMPLEMENTED|INVALID_ARGUMENT|RESOURCE_EXHAUSTED): "),
    re.compile(r"Mosaic failed to compile TPU kernel( with MLIR module name `[^`]*` HLO name `[^`]*`)?: "),
    re.compile(r"^Pallas encountered an internal verification error\. Please file a bug at \S+ Error details: "),
    re.compile(r" *Please file an issue at \S+$"),
)


@dataclass(frozen=True)
class Failure:
    """Why a kernel does not compile. `lines` are of the kernel file, innermost first, empty if none is to blame."""

    stage: str
    reason: str
    lines: tuple[int, ...]
    detail: str

    @property
    def line(self) -> int | None:
        return self.lines[0] if self.lines else None

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Failure":
        return cls(**{**data, "lines": tuple(data["lines"])})


class CompileFailed(CheckFailed):
    """The TPU compiler, or jax on the way to it, refused a kernel."""

    def __init__(self, kernel: str, failure: Failure) -> None:
        self.failure = failure
        where = f"{kernel}:{failure.line}" if failure.line else kernel
        super().__init__(f"{where}: {failure.stage} failed: {failure.reason}")


def failure_of(error: BaseException, stage: str, kernel_file: str) -> Failure:
    """Read an exception raised while loading, lowering or compiling a kernel."""
    chain = list(_chain(error))
    lines = next((found for e in chain if (found := _lines_of(e, kernel_file))), ())
    detail = "".join(traceback.format_exception(error))
    return Failure(stage, reason_of(str(error) or type(error).__name__, type(error).__name__), lines, detail)


def _lines_of(error: BaseException, kernel_file: str) -> tuple[int, ...]:
    """Lines of the kernel's schedule that an exception names, else of its helpers; innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[::-1]
    if isinstance(error, SyntaxError) and error.filename == kernel_file and error.lineno:
        return (error.lineno,)
    located = [int(found["line"]) for found in _LOCATION.finditer(str(error)) if found["file"] == kernel_file]
    schedule = located + [f.lineno for f in frames if f.filename == kernel_file and f.lineno]
    helpers = [f.lineno for f in frames if f.filename == HELPERS + kernel_file and f.lineno]
    return tuple(dict.fromkeys(schedule)) or tuple(dict.fromkeys(helpers))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def reason_of(message: str, error_name: str) -> str:
    """The one line of a compiler message that a person needs."""
    if found := _SCOPED.search(message):
        size, limit, over = found.groups()
        return f"VMEM exhausted: {size} allocated, the kernel's limit is {limit}: {over} too much"
    if found := _TOO_LARGE.search(message):
        over = int(found["size"]) - int(found["limit"])
        return (
            f"{found['space'].upper()} exhausted: {found['shape']} takes {int(found['size']):,} bytes of "
            f"{int(found['limit']):,}: {over:,} too many"
        )
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    first = lines[0]
    for noise in _NOISE:
        first = noise.sub("", first)
    if first.endswith(":") and len(lines) > 1:
        first = f"{first} {lines[1]}"
    return first if error_name in ("JaxRuntimeError", "MosaicError", "VerificationError") else f"{error_name}: {first}"

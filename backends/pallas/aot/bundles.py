"""Read the scheduled bundles: the `packed-bundles-post-ra` dump, one bundle (one issue cycle) an entry.

    0x41   : > { %7622 = dma.hbm_to_vmem (%p7625_p4), …, /*size_in_granules=*/131072, … /* loc("k.py":53:16 to :50) */ }

The dump `final_bundles` must not be used in its place: it leaves out the empty bundles.
"""

import re
from collections import Counter
from dataclasses import dataclass

from .report import Branch, Cycles, Transfer

GRANULE = 32  # bytes

_BUNDLE = re.compile(r"^ *(0x[0-9a-f]+|\d+) +(?:[A-Z]{2}:? ?)*: *>* *\{", re.MULTILINE)
_LOCATION = re.compile(r'/\* loc\("(?P<file>[^"]*)":(?P<line>\d+):|loc\("(?P<file2>[^"]*)":(?P<line2>\d+):')
_START = re.compile(r"^%\w+ = dma\.(?P<direction>(?!done)\w+)")
_WAIT = re.compile(r"^%\w+ = dma\.done\.wait (?:\(!?%\w+\),? *)?(?:\[[^]]*\]|\S+), (?P<granules>\d+|%\w+)")
_SIZE = re.compile(r"/\*size_in_granules=\*/(?P<granules>\d+|%\w+)")
_PREDICATE = re.compile(r"^[^/]*\((!?%p\w+)\)")
_TOTAL, _EMPTY = (re.compile(rf"^\s*{kind} scheduled bundles:\s+(\d+)", re.MULTILINE) for kind in ("total", "empty"))
_BRANCH = re.compile(r"target bundleno = (?P<target>\d+)")


@dataclass(frozen=True)
class Bundle:
    """One issue cycle: its operations as text; a stall has none."""

    number: int
    operations: tuple[str, ...]


def read_bundles(text: str) -> tuple[Bundle, ...]:
    """The bundles of a `packed-bundles-post-ra` dump, in order."""
    heads = list(_BUNDLE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    bundles = []
    for head, end in zip(heads, ends, strict=True):
        body = text[head.end() : end].strip()
        body = re.sub(r"\}(\s*/\* (Start|End)[^*]*\*/)?$", "", body).strip()
        operations = tuple(operation.strip() for operation in body.split(" ;;  ")) if body else ()
        bundles.append(Bundle(int(head[1], 0), operations))
    return tuple(bundles)


def line_of(operation: str, kernel_file: str) -> int:
    """The line of the kernel file an operation comes from, 0 if it comes from none."""
    for found in _LOCATION.finditer(operation):
        if (found["file"] or found["file2"]) == kernel_file:
            return int(found["line"] or found["line2"])
    return 0


def transfers_of(bundles: tuple[Bundle, ...], kernel_file: str) -> tuple[Transfer, ...]:
    """Every start and every wait, in the order of the schedule."""
    transfers = []
    for bundle in bundles:
        for operation in bundle.operations:
            line, predicated = line_of(operation, kernel_file), bool(_PREDICATE.search(operation))
            if start := _START.match(operation):
                size = _bytes(_SIZE.search(operation))
                transfers.append(Transfer(bundle.number, line, "start", start["direction"], size, predicated))
            elif wait := _WAIT.match(operation):
                transfers.append(Transfer(bundle.number, line, "wait", "", _bytes(wait), predicated))
    return tuple(transfers)


def _bytes(match: re.Match[str] | None) -> int | None:
    return int(match["granules"]) * GRANULE if match and match["granules"].isdigit() else None


def branches_of(bundles: tuple[Bundle, ...], kernel_file: str) -> tuple[Branch, ...]:
    """Every branch to a known bundle, in the order of the schedule."""
    return tuple(
        Branch(bundle.number, int(found["target"]), line_of(operation, kernel_file))
        for bundle in bundles
        for operation in bundle.operations
        if (found := _BRANCH.search(operation))
    )


def cycles_of(analysis: str) -> Cycles:
    """The counts in the `schedule-analysis_packed-bundles-post-ra` dump."""
    total, empty = _TOTAL.search(analysis), _EMPTY.search(analysis)
    if not total or not empty:
        raise ValueError(f"the schedule analysis of libtpu has no bundle counts: {analysis[:200]!r}")
    return Cycles(int(total[1]), int(empty[1]))


def lines_of(bundles: tuple[Bundle, ...], kernel_file: str) -> list[int]:
    """Of every bundle, the line of the kernel file that it belongs to, 0 for none.

    A bundle belongs to the line with the most operations in it (of several, the first line). A bundle without located
    operations, most often a stall, belongs to the next bundle that has some, which is the one that waits.
    """
    owners: list[int] = []
    waiting = 0
    for bundle in bundles:
        waiting += 1
        lines = Counter(line for operation in bundle.operations if (line := line_of(operation, kernel_file)))
        if lines:
            most = max(lines.values())
            owners += [min(line for line, count in lines.items() if count == most)] * waiting
            waiting = 0
    return owners + [0] * waiting


def cycles_by_line(bundles: tuple[Bundle, ...], kernel_file: str) -> dict[int, int]:
    """Bundles by line of the kernel file, as `lines_of` gives them; their sum is the number of bundles."""
    return dict(sorted(Counter(lines_of(bundles, kernel_file)).items()))

"""What a router's choice is in cycles: the comparisons of its tournament, and the list of experts that comes of it.

The operation (`backends/pallas/operations/router.py`, `tournament.py`) lays experts along sublanes and rows along
lanes, as many panels of 128 experts side by side as there is room for, and merges sorted lists of candidates, each a
value, a number and, with a selection bias, a weight: registers of f32[8, 128] are merged pairwise, then sublanes with
sublanes, then panels with panels. A merge of lists of n compares n registers, and n / 2 in each of log2 n rounds that
sort what comes out, of both halves as long as the lists grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from schedc.ir.program import Attribute

LANES, SUBLANES = 128, 8
Features = dict[str, float]


def route_features(attributes: Mapping[str, Attribute], operands: frozenset[str]) -> Features:
    """`compares`: registers compared, times the parts of a candidate. `merges`: one after the other, each a latency.

    `winners` go to scalars one by one, `panel_winners` by the panels they are found in; `listed`: a list in which
    experts can be found twice is made by marking what was seen.
    """
    experts, rows = _whole(attributes, "experts"), _whole(attributes, "rows")
    top_k, winners = _whole(attributes, "top_k"), _whole(attributes, "top_k") * _whole(attributes, "sequences")
    panels = -(-experts // LANES)
    together = 1 if _whole(attributes, "groups") > 1 else LANES // rows
    registers = -(-experts // SUBLANES)
    if together > 1 and experts >= LANES:
        registers = -(-panels // together) * LANES // SUBLANES
    compares, merges = _merged(registers, min(together, panels), 1 << (top_k - 1).bit_length())
    return {
        "compares": float(compares * (3 if "selection_bias" in operands else 2)),
        "merges": float(merges),
        "winners": float(winners),
        "panel_winners": float(winners * panels),
        "listed": float(may_repeat(attributes)),
    }


def may_repeat(attributes: Mapping[str, Attribute]) -> bool:
    """Whether the winners' list of a device's experts is made by marking: rows may share an expert."""
    several = _whole(attributes, "sequences") > 1 or _whole(attributes, "members") < _whole(attributes, "top_k")
    return several or bool(attributes.get("by_number", False))


def inner_trips(attributes: Mapping[str, Attribute]) -> float:
    """Trips after the first of the scalar loops that list the experts: over winners and, by number, over members."""
    if not may_repeat(attributes):
        return 0.0
    winners = _whole(attributes, "sequences") * _whole(attributes, "top_k")
    return winners - 1 + (_whole(attributes, "members") - 1 if attributes.get("by_number") else 0)


def _merged(registers: int, groups: int, most: int) -> tuple[int, int]:
    """(registers compared, merges one after the other) from lists of one to the `most` best of all."""
    compares, merges, length = 0, 0, 1
    lists = registers
    while lists > 1:
        lists = -(-lists // 2)
        compares += lists * _compares(length, most)
        length, merges = min(2 * length, most), merges + 1
    for _ in range(3 + (groups - 1).bit_length()):
        compares += _compares(length, most)
        length, merges = min(2 * length, most), merges + 1
    return compares, merges


def _compares(length: int, most: int) -> int:
    """Of one merge of two lists of `length`."""
    sort = length // 2 * int(log2(length))
    return length + sort * (2 if 2 * length <= most else 1)


def _whole(attributes: Mapping[str, Attribute], name: str) -> int:
    return int(attributes[name])

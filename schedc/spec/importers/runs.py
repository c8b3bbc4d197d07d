"""Layers as runs of repeated patterns, with as few blocks to write down, and to compile, as the layers allow."""

from typing import Any

Layer = dict[str, Any]
_LONGEST_PERIOD = 64
"""Layers of the longest pattern that is looked for between irregular ends."""


def runs(layers: list[Layer]) -> list[dict[str, Any]]:
    """The shortest of: equal neighbours put together; one period, with what is left of it at the end; for layers
    without a period, loops between irregular ends."""
    if not layers:
        return []
    neighbours = _neighbours(layers)
    period = next((p for p in range(1, len(layers)) if layers[p:] == layers[:-p]), len(layers))
    whole = len(layers) // period * period
    periodic = [{"repeat": len(layers) // period, "pattern": layers[:period]}]
    if layers[whole:]:
        periodic.append({"repeat": 1, "pattern": layers[whole:]})
    candidates = [neighbours, periodic] if period <= len(layers) // 2 else [neighbours, _peeled(layers)]
    return min(candidates, key=lambda found: sum(len(run["pattern"]) for run in found))


def _neighbours(layers: list[Layer]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for layer in layers:
        if found and found[-1]["pattern"] == [layer]:
            found[-1]["repeat"] += 1
        else:
            found.append({"repeat": 1, "pattern": [layer]})
    return found


def _peeled(layers: list[Layer]) -> list[dict[str, Any]]:
    """The fewest blocks, then the fewest runs, then the longest loop first: [a bbc bbc bbc bb] → a, 3 × bbc, 2 × b.

    From the last layer to the first, the best way on from every layer: a pattern, as often as it repeats from there.
    """
    kinds = _numbered(layers)
    count = len(kinds)
    alike = [[0] * (min(_LONGEST_PERIOD, count) + 1) for _ in range(count + 1)]
    best: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)] * (count + 1)
    """Blocks and runs from a layer on; the length of its pattern and how often that repeats."""
    for first in reversed(range(count)):
        choices = []
        for length in range(1, min(_LONGEST_PERIOD, count - first) + 1):
            behind = first + length
            same = behind < count and kinds[first] == kinds[behind]
            alike[first][length] = alike[first + 1][length] + 1 if same else 0
            repeat = alike[first][length] // length + 1
            blocks, further, *_ = best[first + length * repeat]
            covered = -length * repeat if repeat > 1 else length
            choices.append((blocks + length, further + 1, covered, length, repeat))
        blocks, number, _, length, repeat = min(choices)
        best[first] = blocks, number, length, repeat
    found: list[dict[str, Any]] = []
    first = 0
    while first < count:
        *_, length, repeat = best[first]
        found.append({"repeat": repeat, "pattern": layers[first : first + length]})
        first += length * repeat
    return found


def _numbered(layers: list[Layer]) -> list[int]:
    """Equal layers have equal numbers."""
    different: list[Layer] = []
    for layer in layers:
        if layer not in different:
            different.append(layer)
    return [different.index(layer) for layer in layers]

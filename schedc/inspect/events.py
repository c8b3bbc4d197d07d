"""The events of a simulated step by the operation that they are of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from schedc.cost.timeline import Event


def by_operation(events: Iterable[Event], lanes: Collection[str]) -> dict[int, Iterator[Event]]:
    """Those of these lanes, of every operation in the order in which they were issued: that of its executions."""
    found: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event.lane in lanes:
            found[event.op].append(event)
    return {number: iter(sorted(of_op, key=lambda event: event.issued_ns)) for number, of_op in found.items()}

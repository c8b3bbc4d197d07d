"""Greedy packing: one item after the other at the lowest address where it fits, in several orders."""

from __future__ import annotations

from collections.abc import Callable

from schedc.ir.allocate.problem import Item, Problem, aligned

ORDERS: dict[str, Callable[[Item], tuple[int, ...]]] = {
    "area": lambda item: (-item.size * item.duration, item.spans[0][0]),
    "size": lambda item: (-item.size, item.spans[0][0]),
    "lifetime": lambda item: (-item.duration, -item.size),
    "start": lambda item: (item.spans[0][0], -item.size),
    "end": lambda item: (-item.spans[-1][1], -item.size),
}


def greedy(problem: Problem) -> dict[str, int]:
    """The lowest of the packings that the orders give; always a valid one if the fixed items do not overlap."""
    packings = [_pack(problem, order) for order in ORDERS.values()]
    return min(packings, key=problem.height)


def _pack(problem: Problem, order: Callable[[Item], tuple[int, ...]]) -> dict[str, int]:
    placed: list[tuple[int, Item]] = [(item.fixed, item) for item in problem.items if item.fixed is not None]
    for item in sorted((item for item in problem.items if item.fixed is None), key=lambda i: (*order(i), i.name)):
        row = 0
        for address, other in sorted((pair for pair in placed if item.meets(pair[1])), key=lambda pair: pair[0]):
            if address < row + item.size and row < address + other.size:
                row = aligned(address + other.size, item.align)
        placed.append((row, item))
    return {item.name: address for address, item in placed}

"""Greedy packing: one item after the other at the lowest address where it fits, in several orders."""

from __future__ import annotations

from collections.abc import Callable

from schedc.ir.allocate.problem import Item, Problem, aligned

ORDERS: dict[str, Callable[[Item], tuple[int, ...]]] = {
    "area": lambda item: (-item.size * (item.upper - item.lower), item.lower),
    "size": lambda item: (-item.size, item.lower),
    "lifetime": lambda item: (item.lower - item.upper, -item.size),
    "start": lambda item: (item.lower, -item.size),
    "end": lambda item: (-item.upper, -item.size),
}


def greedy(problem: Problem) -> dict[str, int]:
    """The lowest of the packings that the orders give; always a valid one if no address is fixed."""
    packings = [_pack(problem, order) for order in ORDERS.values()]
    return min(packings, key=problem.height)


def _pack(problem: Problem, order: Callable[[Item], tuple[int, ...]]) -> dict[str, int]:
    placed: list[tuple[Item, int]] = [(item, item.fixed) for item in problem.items if item.fixed is not None]
    for item in sorted((item for item in problem.items if item.fixed is None), key=lambda i: (*order(i), i.name)):
        row = 0
        for other, address in sorted(placed, key=lambda pair: pair[1]):
            if item.meets(other) and address < row + item.size and row < address + other.size:
                row = aligned(address + other.size, item.align)
        placed.append((item, row))
    return {item.name: address for item, address in placed}

"""Exact packing into a given height: depth-first search that learns which choices made a branch fail.

Items are placed from the bottom up. The state of an item is its lowest row: no solution below this branch has
it lower. A choice takes the item with the lowest of these rows, and either places it there, which lifts every item
it meets above it, or postpones it. A postponed item lies higher; and because every packing can be pushed down until
no item fits anywhere below its place, it lies directly above an item that takes some of the rows it was refused:

    row 4 |          a a a a             a is postponed from row 0:
        3 | b b b b b b                  some b, which a meets, takes rows of 0..2,
        0 | . . . . [a a a a]            so a is at least at the lowest possible top of such a b

A branch fails when, in some section of time, items that all start at row r or above need more rows than are left
above r, or when nothing is left that could keep a postponed item up. Every lowest row knows what lifted it, so a
failure is traced back to the choices that caused it; the search goes back to the last of these, past all others.

Sections of time, dominance and pushed-down packings are those of

    M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning",
    ASPLOS 2023;

postponing is that of Le Pape, Couronné, Vergamini and Gosselin, "Time-versus-capacity compromises in project
scheduling" (1994); going back by causes that of P. Prosser, "Hybrid algorithms for the constraint satisfaction
problem" (1993).

The modules `trail`, `explain`, `moves` and `dive` are compiled by numba when they are first imported; without numba
they run as they are, a hundred times slower.
"""

"""Where the parts of a program are, and programs with one part exchanged.

An operation is found by its path, the indices of the blocks that lead to it; a part of an operation (a region, a
semaphore, an expression) by its site, the fields that lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from schedc.ir.program import BLOCKS, Op, Program

Path = tuple[int, ...]
Site = tuple[str | int, ...]


def operations(program: Program, *kinds: type) -> list[tuple[Path, Any]]:
    """Every operation of one of the kinds, in program order."""
    return [(path, op) for path, op in _operations(program.body, ()) if isinstance(op, kinds)]


def _operations(ops: tuple[Op, ...], prefix: Path) -> Iterator[tuple[Path, Op]]:
    for index, op in enumerate(ops):
        yield (*prefix, index), op
        if isinstance(op, BLOCKS):
            yield from _operations(op.body, (*prefix, index))


def block(program: Program, path: Path) -> tuple[Op, ...]:
    """The operations of the block that has this path; that of the program is ()."""
    ops = program.body
    for index in path:
        ops = ops[index].body  # type: ignore[union-attr]
    return ops


def with_block(program: Program, path: Path, ops: tuple[Op, ...]) -> Program:
    return replace(program, body=_with_block(program.body, path, ops))


def _with_block(body: tuple[Op, ...], path: Path, ops: tuple[Op, ...]) -> tuple[Op, ...]:
    if not path:
        return ops
    index, *rest = path
    inner = body[index]
    changed = replace(inner, body=_with_block(inner.body, tuple(rest), ops))  # type: ignore[union-attr, call-arg]
    return (*body[:index], changed, *body[index + 1 :])


def exchanged(program: Program, path: Path, *ops: Op) -> Program:
    """The program with `ops` instead of the operation at `path`."""
    *outer, index = path
    siblings = block(program, tuple(outer))
    return with_block(program, tuple(outer), (*siblings[:index], *ops, *siblings[index + 1 :]))


def sites(value: Any, kind: type) -> list[Site]:
    """Where in an operation the parts of a kind are; not in the operations of its body."""
    return list(_sites(value, kind, ()))


def _sites(value: Any, kind: type, prefix: Site) -> Iterator[Site]:
    if isinstance(value, kind):
        yield prefix
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _sites(item, kind, (*prefix, index))
    elif is_dataclass(value):
        for field in fields(value):
            if field.name != "body":
                yield from _sites(getattr(value, field.name), kind, (*prefix, field.name))


def part(value: Any, site: Site) -> Any:
    for step in site:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    return value


def with_part(value: Any, site: Site, new: Any) -> Any:
    if not site:
        return new
    step, *rest = site
    if isinstance(step, int):
        return (*value[:step], with_part(value[step], tuple(rest), new), *value[step + 1 :])
    return replace(value, **{step: with_part(getattr(value, step), tuple(rest), new)})


def all_sites(program: Program, kind: type, *within: type) -> list[tuple[Path, Site, Any]]:
    """(path, site, part) of every part of a kind in operations of the kinds `within` (all if none is given)."""
    return [
        (path, site, part(op, site))
        for path, op in operations(program, *(within or (object,)))
        for site in sites(op, kind)
    ]


def with_part_of(program: Program, path: Path, site: Site, new: Any) -> Program:
    *outer, index = path
    return exchanged(program, path, with_part(block(program, tuple(outer))[index], site, new))

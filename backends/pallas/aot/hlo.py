"""Read the optimized HLO around the kernel: copies that would cost HBM time in every step."""

import math
import re

from .report import Copy

_COPY = re.compile(r"^ *(?:ROOT )?%(?P<name>\S+) = (?P<result>\(?\w+\[[^=]*?) (?:copy|copy-start)\(", re.MULTILINE)
_SHAPE = re.compile(r"(?P<dtype>[a-z]+\d*\w*)\[(?P<dims>[\d,]*)\](?:\{[^}]*\})?")
_BITS = re.compile(r"\d+")


def copies_of(text: str) -> tuple[Copy, ...]:
    """Every copy in the module, synchronous or not, with the bytes of its result."""
    return tuple(
        Copy(found["name"], _bytes(shape), shape[0])
        for found in _COPY.finditer(text)
        if (shape := _SHAPE.search(found["result"]))
    )


def _bytes(shape: re.Match[str]) -> int:
    bits = _BITS.search(shape["dtype"])
    elements = math.prod(int(size) for size in shape["dims"].split(",") if size)
    return elements * (int(bits[0]) if bits else 8) // 8

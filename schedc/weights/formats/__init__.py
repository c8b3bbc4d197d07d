"""The formats that projections are stored in, one a file. `FORMATS` finds a format by the name a spec gives it."""

from collections.abc import Iterable

from schedc.errors import UserError
from schedc.weights.formats import bf16, f32, fp8, fp8_block, int4, int8, mxfp4, nvfp4
from schedc.weights.formats.format import Format

FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        bf16.FORMAT,
        f32.FORMAT,
        int8.FORMAT,
        fp8.FORMAT,
        *fp8_block.FORMATS,
        *int4.FORMATS,
        mxfp4.FORMAT,
        nvfp4.FORMAT,
    )
}


def cut_at(format: str, boundaries: Iterable[int], what: str) -> str:
    """The format itself, or the coarsest that it can be cut into exactly, so that groups end at these inputs.

    Raises UserError if there is none for `what`.
    """
    places = tuple(boundaries)
    known = [FORMATS[format], *(finer for finer in FORMATS.values() if format in finer.finer_than)]
    for candidate in sorted(known, key=lambda candidate: -candidate.group):
        if not any(place % candidate.group for place in places):
            return candidate.name
    smallest = min(candidate.group for candidate in known)
    cut = next(place for place in places if place % smallest)
    raise UserError(
        f"{what}: {format} has groups of {smallest} inputs at the least, and the cut at input {cut} divides one; use "
        f"as many devices as cut at multiples of {smallest}"
    )

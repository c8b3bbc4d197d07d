"""By which algorithm devices sum, and in which format on the wire: µs by the chip's linear cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedc.compiler.decisions.decision import Alternative, Decision
from schedc.compiler.pipeline import Request
from schedc.errors import UserError
from schedc.ir.program import ROW_BYTES
from schedc.lower.collectives.choose import MEMORY_SHARE, buffer_rows, microseconds, summed_by
from schedc.lower.collectives.communication import SUM_SITES
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.collectives.registry import algorithms_for


def decisions(request: Request) -> Iterator[Decision]:
    target, shape = request.target, request.shape
    if shape.devices == 1:
        return
    talk = shape.communication
    summed = summed_by(request.spec.hidden, shape.rows, target, talk.wire)
    most = int(MEMORY_SHARE * target.capability.vmem_usable_bytes)
    every = {a.name: _cost(request, summed, a.name, most) for a in algorithms_for("all_reduce")}
    what = f"sum of f32[{shape.rows}, {request.spec.hidden}] over {shape.devices} devices"
    chosen = every.pop(talk.all_reduce, None)
    yield Decision(
        "collective",
        what,
        talk.all_reduce,
        f"asked for, or the quickest by the chip's figures whose buffers take at most {most:,} bytes of VMEM",
        "µs",
        chosen.cost if chosen else None,
        tuple(every.values()),
    )
    other = "bf16" if talk.wire == "f32" else "f32"
    there = _cost(request, replace(summed, wire=other), talk.all_reduce, most)  # type: ignore[arg-type]
    loses = "rounds what is summed" if other == "bf16" else "twice the bytes"
    yield Decision(
        "collective",
        "words on the wire",
        talk.wire,
        "asked for, or f32, which loses nothing",
        "µs",
        chosen.cost if chosen else None,
        (Alternative(other, there.cost, loses),),
    )
    for site in SUM_SITES:
        if talk.asked(site) or dict(talk.wires).get(site):
            how = f"{talk.algorithm(site)}, {talk.wire_of(site)} on the wire"
            yield Decision("collective", f"sum at the site {site}", how, "asked for at this site")


def _cost(request: Request, summed: Exchanged, name: str, most: int) -> Alternative:
    algorithm = next(a for a in algorithms_for("all_reduce") if a.name == name)
    try:
        time = microseconds(algorithm, summed, request.target.cost)
        buffers = buffer_rows(algorithm, summed) * ROW_BYTES
    except UserError as error:
        return Alternative(name, None, str(error))
    over = f", more than {most:,}" if buffers > most else ""
    return Alternative(name, round(time, 3), f"buffers of {buffers:,} bytes{over}")

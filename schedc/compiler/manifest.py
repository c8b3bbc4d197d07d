"""`manifest.json`: what a program that loads the kernel must know, and what a reader wants to look up."""

from __future__ import annotations

from typing import Any

from schedc import __version__
from schedc.compiler.pipeline import Compiled
from schedc.ir.live import live_ranges
from schedc.ir.placed import placed
from schedc.ir.program import ROW_BYTES, Array, Program, Start
from schedc.ir.text_print import print_op
from schedc.lower.graph import shape_to_dict
from schedc.target.chip import Chip
from schedc.target.load import is_packaged
from schedc.weights.layout import layouts_hash, on_device, to_dict

INTERFACE = 3
"""Version of the kernel's interface: arguments, caches, ids out, several steps a call."""


def manifest(compiled: Compiled) -> dict[str, Any]:
    program, request = compiled.program, compiled.request
    kinds = {array.name: array for array in program.arrays}
    return {
        "schedc": __version__,
        "interface": INTERFACE,
        "kernel": program.name,
        "model": request.spec.name,
        "target": request.target.name,
        **_own_chip(request.target.chip),
        "devices_used": request.target.devices_used,
        "policy": request.policy,
        "settings": dict(request.settings or {}),
        "rows": request.shape.rows,
        "context": request.shape.context,
        "logits": request.shape.logits,
        "taps": list(request.shape.taps),
        "shape": shape_to_dict(request.shape),
        "kv_tokens": compiled.schedule.plan.kv_tokens,
        "spec": request.spec.model_dump(mode="json", exclude_defaults=True),
        "vmem": {
            "row_bytes": ROW_BYTES,
            "limit_bytes": request.target.capability.vmem_usable_bytes,
            "pools": {pool.name: pool.rows for pool in program.pools},
            "buffers": _buffers(program),
        },
        "semaphores": {semaphore.name: semaphore.count for semaphore in program.semaphores},
        "transfers": _transfers(compiled, kinds),
        "weights": {
            "hash": layouts_hash(compiled.schedule.layouts),
            "device_hashes": [
                layouts_hash([on_device(layout, device) for layout in compiled.schedule.layouts])
                for device in range(request.shape.devices)
            ],
            "bytes": sum(layout.rows for layout in compiled.schedule.layouts) * ROW_BYTES,
            "layouts": [to_dict(layout) for layout in compiled.schedule.layouts],
        },
    }


def _own_chip(chip: Chip) -> dict[str, Any]:
    """The whole chip, if it is none of those that come with schedc: its file may change, or be elsewhere."""
    return {} if is_packaged(chip) else {"chip": chip.model_dump(mode="json")}


def _buffers(program: Program) -> list[dict[str, Any]]:
    ranges = {live.buffer: live for live in live_ranges(program)}
    return [
        {
            "name": buffer.name,
            "pool": buffer.pool,
            "address": buffer.address,
            "rows": buffer.rows,
            "slots": buffer.slots,
            "live": [ranges[buffer.name].first, ranges[buffer.name].last] if buffer.name in ranges else None,
        }
        for buffer in program.buffers
    ]


def _transfers(compiled: Compiled, arrays: dict[str, Array]) -> list[dict[str, Any]]:
    """Every start in program order, with its line in the kernel."""
    places = placed(compiled.program.body)
    return [
        {
            "line": line,
            "phase": place.phase,
            "direction": "vmem_to_hbm" if op.target.storage in arrays else "hbm_to_vmem",
            "rows": op.source.rows,
            "operation": print_op(op),
        }
        for (line, op), place in zip(compiled.kernel.operations, places, strict=True)
        if isinstance(op, Start)
    ]

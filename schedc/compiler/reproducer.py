"""A folder that shows a fault again without schedc: the kernel, its arguments, and a script that needs only jax.

Of an interpreted step, `python run.py` calls it once and compares its logits with the expected ones; of a kernel that
the TPU compiler refuses, it compiles it ahead of time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedc.compiler.recording import Recorded
from schedc.compiler.shrink import Shrunk
from schedc.errors import UserError
from schedc.placement.widths import head_split

KERNEL, INPUTS, EXPECTED, CASE, RUN, README = (
    "kernel.py", "inputs.npz", "expected.npz", "case.json", "run.py", "README.md",
)  # fmt: skip
SCRIPTS = Path(__file__).with_name("scripts")


def new_folder(folder: Path) -> None:
    """Raises UserError for a folder that is there and not empty, or cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder}: is not empty; give a new folder for the reproducer")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from None


def refuse_used_folder(folder: Path) -> None:
    """Raises UserError, before there is anything to write, where `new_folder` would. Leaves nothing behind."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    new_folder(folder)
    for path in missing:
        path.rmdir()


def write_reproducer(
    folder: Path, kept: Path, small: Shrunk, mode: str, problems: Sequence[str], records: Sequence[Recorded] = ()
) -> None:
    """Of an interpreted step: `kept` has the kernel, the arguments, and the logits that are expected, if it ended.

    `records`: what the kernel copies out of its phases.
    """
    new_folder(folder)
    for name in (KERNEL, INPUTS, EXPECTED):
        if (kept / name).exists():
            shutil.copyfile(kept / name, folder / name)
    shape = small.shape
    split = head_split(small.spec.vocab, shape.devices, shape.placement)
    held = [split.held(device) for device in range(shape.devices)]
    arrays = dict.fromkeys(one.array for one in records if one.array)
    case: dict[str, Any] = {
        "mode": mode,
        "devices": shape.devices,
        "rows": shape.rows,
        "padded_rows": shape.padded_rows,
        "vocab": small.spec.vocab,
        "columns": [[columns.start, columns.stop] for columns in held],
        "copies": {name: _copied([one for one in records if one.array == name]) for name in arrays},
    }
    _finish(folder, case, "interpret.py", problems)


def _copied(of_array: Sequence[Recorded]) -> str:
    one, meanings = of_array[0], ", ".join(one.value.meaning for one in of_array)
    layers = f" of layers {', '.join(map(str, one.layers))}" if one.layers else ""
    return f"{meanings}, in buffer {one.value.buffer} behind phase {one.phase}{layers}"


def write_compile_reproducer(folder: Path, kernel: Path, topology: str, devices: int, message: str) -> None:
    """Of a kernel that the TPU compiler refuses."""
    new_folder(folder)
    shutil.copyfile(kernel, folder / KERNEL)
    _finish(folder, {"topology": topology, "devices": devices}, "compile.py", [message])


def _finish(folder: Path, case: dict[str, Any], script: str, problems: Sequence[str]) -> None:
    (folder / CASE).write_text(json.dumps(case, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(SCRIPTS / script, folder / RUN)
    said = "\n".join(f"    {line}" for problem in problems for line in problem.splitlines())
    text = f"# What goes wrong\n\n{said}\n\n`python {RUN}` shows it again; it needs jax and numpy.\n"
    if case.get("copies"):
        listed = "".join(f"- `{array}`: {meaning}\n" for array, meaning in case["copies"].items())
        text += f"\n`python {RUN} --save` writes its outputs to results.npz, with copies of buffers:\n\n{listed}"
    (folder / README).write_text(text, encoding="utf-8")

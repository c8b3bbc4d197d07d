"""Compile every case with the real TPU compiler and write the table.

    python -m benchmarks.full_size                                  with this Python's jax
    python -m benchmarks.full_size --python .venv-py311/bin/python --python .venv-py312/bin/python    on both lines
    python -m benchmarks.full_size --case llama --again             cases whose name has `llama`, measured anew

A case whose program is that of its row is not compiled again without --again; its step is predicted anew. Every
finished case is kept at once, and rows of a program that the case no longer is are dropped. Ends with 1 if a case did
not compile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from benchmarks.full_size.cases import Case, hash_of, load_cases
from benchmarks.full_size.table import ROOT, Key, Row, read_table, write_table
from schedc.compiler.pipeline import build
from schedc.cost.report import CostReport, predict
from schedc.errors import SchedcError


def measure(case: Case, timeout: float) -> Row:
    """Compile one case here. Raises what the compilation raises."""
    from schedc.compiler.check import check, require_agreement
    from schedc.compiler.passes import Watch
    from schedc.compiler.pipeline import compile_model

    request = case.request()
    watch = Watch()
    compiled = compile_model(request, watch)
    with tempfile.TemporaryDirectory(prefix="schedc-full-size-") as folder:
        kernel = Path(folder) / "kernel.py"
        kernel.write_text(compiled.kernel.source, encoding="utf-8")
        report = check(compiled, kernel, timeout)
    require_agreement(report)
    return Row(
        case=case.name,
        target=case.target,
        devices=case.devices,
        rows=case.rows,
        context=case.context,
        jax=report.versions["jax"],
        libtpu=report.versions["libtpu"],
        program=hash_of(compiled.program),
        vmem_bytes=sum(report.vmem_bytes.values()) - report.vmem_bytes["internal"],
        spill_bytes=report.vmem_bytes["spill"],
        vmem_limit_bytes=report.vmem_limit_bytes,
        code_bytes=report.code_bytes,
        issue_cycles=report.issue_cycles,
        prove_seconds=round(watch.seconds["verify"], 1),
        compile_seconds=round(report.lower_seconds + report.compile_seconds, 1),
        step_us=round(compiled.cost.step_us, 1),
    )


def _in_another_process(python: str, case: Case, timeout: float) -> Row | str:
    """The row, or why there is none: a case that takes all memory, or crashes, ends nothing else."""
    command = [python, "-m", "benchmarks.full_size", "--one", json.dumps(asdict(case)), "--timeout", str(timeout)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Row(**json.loads(done.stdout.splitlines()[-1]))
    said = done.stderr.strip().splitlines()
    if not said:
        return f"exit code {done.returncode}"
    error = max((index for index, line in enumerate(said) if "Error" in line or "Failed:" in line), default=-1)
    return " ".join(line.strip() for line in said[error:][:4])


def _jax_of(python: str) -> str:
    asked = "from importlib.metadata import version; print(version('jax'))"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def run(cases: list[Case], pythons: list[str], again: bool, timeout: float) -> int:
    """Compile what has no row of its program; the number of cases that failed."""
    everything = load_cases()
    order = {(case.name, case.rows, case.context): index for index, case in enumerate(everything)}
    rows = {row.key: row for row in read_table() if row.key[:3] in order}
    predicted: dict[Key, Row] = {}
    failed = 0
    for case in cases:
        try:
            request = case.request()
            built = build(request)[1]
            program = hash_of(built)
        except SchedcError as error:
            failed += 1
            print(f"{case.label}: FAILED: {str(error).splitlines()[0]}", flush=True)
            continue
        predicted |= _predicted_anew(rows, case, program, partial(predict, built, request.target, analyse=False))
        for python in pythons:
            jax = _jax_of(python)
            old = rows.get((case.name, case.rows, case.context, jax))
            if old is not None and old.program == program and not again:
                print(f"{case.label}, jax {jax}: unchanged", flush=True)
                continue
            began = time.monotonic()
            made = _in_another_process(python, case, timeout)
            if isinstance(made, str):
                failed += 1
                print(f"{case.label}, jax {jax}: FAILED: {made}", flush=True)
                continue
            # Another run may have added to the table meanwhile.
            rows = {row.key: row for row in read_table() if row.key[:3] in order}
            rows = {key: row for key, row in rows.items() if key[:3] != made.key[:3] or row.program == made.program}
            rows[made.key] = made
            predicted.pop(made.key, None)
            _write(rows, order)
            taken = time.monotonic() - began
            print(f"{case.label}, jax {jax}: {made.compile_seconds:.1f} s in the compiler, {taken:.0f} s", flush=True)
    rows = {row.key: row for row in read_table() if row.key[:3] in order} | predicted
    _write(rows, order)
    return failed


def _write(rows: Mapping[Key, Row], order: Mapping[tuple[str, int, int], int]) -> None:
    """In the order of the cases. A program is proven for one line of jax, and the others read that from the cache."""
    proofs: dict[str, float] = {}
    for row in rows.values():
        proofs[row.program] = max(proofs.get(row.program, 0.0), row.prove_seconds)
    whole = [replace(row, prove_seconds=proofs[row.program]) for row in rows.values()]
    write_table(sorted(whole, key=lambda row: (order[row.key[:3]], row.jax)))


def _predicted_anew(
    rows: Mapping[Key, Row], case: Case, program: str, prediction: Callable[[], CostReport]
) -> dict[Key, Row]:
    """The rows of a program that has not changed, with the step that is predicted for it today."""
    same = [
        row for key, row in rows.items() if key[:3] == (case.name, case.rows, case.context) and row.program == program
    ]
    step = round(prediction().step_us, 1) if same else 0.0
    return {row.key: replace(row, step_us=step) for row in same}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter with schedc and its jax; several times")
    parser.add_argument("--case", default="", help="only cases with this in their name")
    parser.add_argument("--again", action="store_true", help="also cases whose program has not changed")
    parser.add_argument("--timeout", type=float, default=600, help="seconds the TPU compiler may take")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(measure(Case(**json.loads(given.one)), given.timeout))))
        return 0
    cases = [case for case in load_cases() if given.case in case.name]
    if not cases:
        names = ", ".join(dict.fromkeys(case.name for case in load_cases()))
        print(f"no case has {given.case!r} in its name; there are {names}", file=sys.stderr)
        return 2
    print(f"{len(cases)} cases, schedc {version('schedc')}")
    return 1 if run(cases, given.python or [sys.executable], given.again, given.timeout) else 0


if __name__ == "__main__":
    sys.exit(main())

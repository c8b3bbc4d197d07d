"""A kernel is not compiled twice by the same compiler with the same flags, and a proof is not made twice."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schedc import cache
from schedc.backends.pallas.aot import compile as aot
from schedc.backends.pallas.aot.compile import compile_kernel, compile_with_bundles
from schedc.backends.pallas.aot.report import CompileReport, Cycles, Seconds, Versions
from schedc.compiler import refusals
from schedc.compiler.pipeline import limits_of
from schedc.compiler.proofs import keep, proven_before
from schedc.compiler.refusals import NotProven, prove
from schedc.ir.program import Phase, Program, Wait
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Verdict, verify
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

REPORT = CompileReport(
    "k", "tpu7x:2x2x1", 1, Versions("1", "1", "1"), Seconds(0.1, 0.2), 10, 0, 0, 0, 0, (), cycles=Cycles(31, 3)
)
TARGET = parse_target("tpu7x")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """The requests that reach the compiler."""
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path / "cache"))
    requests: list[dict[str, Any]] = []

    def worker(request: dict[str, Any], *, dump: bool, **_: Any) -> Any:
        requests.append(request)
        if dump and "bundles" in request:
            Path(request["bundles"]).write_bytes(gzip.compress(b"0x0 : { nop }"))
        return REPORT.to_dict()

    monkeypatch.setattr(aot, "run_worker", worker)
    return requests


def kernel(folder: Path, text: str = "one") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "kernel.py"
    path.write_text(f'"""{text}"""\n')
    return path


def test_the_same_kernel_is_compiled_once_wherever_its_file_is(asked: list[dict[str, Any]], tmp_path: Path):
    first = compile_kernel(kernel(tmp_path / "a"), "tpu7x:2x2x1", store=cache.active())
    again = compile_kernel(kernel(tmp_path / "b"), "tpu7x:2x2x1", store=cache.active())
    assert first == again == REPORT and len(asked) == 1
    assert compile_with_bundles(kernel(tmp_path / "c"), "tpu7x:2x2x1", store=cache.active()) == (
        REPORT,
        "0x0 : { nop }",
    )
    assert len(asked) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: {"topology_name": "tpu7x:2x2x2"},
        lambda patch: {"devices_used": 2},
        lambda patch: {"steps": 2},
        lambda patch: {"annotate": False},
        lambda patch: {"dump": False},
        lambda patch: patch.setenv("XLA_FLAGS", "--xla_other") or {},
        lambda patch: patch.setattr(aot.importlib.metadata, "version", lambda name: "9.9") or {},
        lambda patch: patch.setattr(aot, "code_digest", lambda *folders: "other") or {},
    ],
)
def test_another_compiler_flag_or_size_compiles_anew(
    asked: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., dict[str, Any]]
):
    given: dict[str, Any] = {"topology_name": "tpu7x:2x2x1", "devices_used": 1, "steps": 1, "annotate": True}
    path = kernel(tmp_path / "a")
    compile_kernel(path, **given, store=cache.active())
    compile_kernel(path, **(given | change(monkeypatch)), store=cache.active())
    assert len(asked) == 2


def test_another_kernel_or_no_cache_compiles_anew(asked: list[dict[str, Any]], tmp_path: Path):
    compile_kernel(kernel(tmp_path / "a"), "tpu7x:2x2x1", store=cache.active())
    compile_kernel(kernel(tmp_path / "a", "two"), "tpu7x:2x2x1", store=cache.active())
    with cache.switched_off():
        assert cache.active() is None
        compile_kernel(kernel(tmp_path / "a"), "tpu7x:2x2x1", store=cache.active())
    assert len(asked) == 3


def test_an_entry_without_its_bundles_is_compiled_anew(asked: list[dict[str, Any]], tmp_path: Path):
    path = kernel(tmp_path / "a")
    compile_kernel(path, "tpu7x:2x2x1", store=cache.active())
    next((tmp_path / "cache").rglob(aot.BUNDLES)).unlink()
    compile_with_bundles(path, "tpu7x:2x2x1", store=cache.active())
    assert len(asked) == 2


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path / "cache"))
    from schedc.compiler.pipeline import with_addresses

    return with_addresses(schedule(load_spec("smollm2-135m"), StepShape(1, 256), TARGET).program, TARGET)


def test_a_long_proof_is_known_again(program: Program, monkeypatch: pytest.MonkeyPatch):
    limits = limits_of(TARGET)
    verdict = verify(program, limits)
    keep(program, limits, verdict, seconds=0.1)
    assert proven_before(program, limits) is None, "a quick one is made again"
    keep(program, limits, verdict, seconds=10.0)
    assert proven_before(program, limits) == verdict
    monkeypatch.setattr(refusals, "verify", lambda *arguments: pytest.fail("proven again"))
    assert prove(program, limits_of(TARGET)) == verdict


def test_another_program_or_limit_is_proven_by_itself(program: Program):
    limits = limits_of(TARGET)
    keep(program, limits, verify(program, limits), seconds=10.0)
    assert proven_before(replace(program, name="other"), limits) is None
    assert proven_before(program, replace(limits, semaphores=limits.semaphores - 1)) is None
    assert proven_before(program, replace(limits, pool_bytes=len)) is None
    last = program.body[-1]
    assert isinstance(last, Phase) and isinstance(last.body[-1], Wait)
    broken = replace(program, body=(*program.body[:-1], replace(last, body=last.body[:-1])))
    with pytest.raises(NotProven):
        prove(broken, limits)


def test_a_refused_program_is_never_kept(program: Program):
    limits = limits_of(TARGET)
    refused = verify(program, replace(limits, vmem_bytes=1000))
    assert not refused.proven
    keep(program, limits, refused, seconds=10.0)
    assert proven_before(program, limits) is None
    assert isinstance(refused, Verdict)


def test_a_small_program_is_not_looked_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("SCHEDC_NO_CACHE", raising=False)
    monkeypatch.setenv("SCHEDC_CACHE", str(tmp_path))
    small = parse_program("program p {\n  pool w rows=8\n  barrier\n}\n")
    with cache.found() as found:
        assert proven_before(small, limits_of(TARGET)) is None
    assert found == [] and not list(tmp_path.iterdir())

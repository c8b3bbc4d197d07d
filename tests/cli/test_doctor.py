"""The doctor says what is here, what is missing, and whether the TPU compiler works."""

from pathlib import Path

import pytest

from schedc.backends.pallas.aot import compile as aot
from schedc.backends.pallas.aot.failure import CompileFailed, Failure
from schedc.compiler import doctor

from .conftest import Command


@pytest.mark.kernel
def test_the_smallest_kernel_goes_through_the_tpu_compiler(schedc: Command) -> None:
    said = schedc("doctor", "--json")
    assert said.code == 0, said
    findings = {finding["name"]: finding for finding in said.json()["findings"]}
    assert findings["TPU compiler"]["state"] == "ok" and "bytes of code" in findings["TPU compiler"]["said"]
    assert findings["jax"]["state"] == findings["extra weights"]["state"] == "ok"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, *arguments: object, **others: object) -> None:
        raise CompileFailed(str(path), Failure("load", "no libtpu", (), ""))

    monkeypatch.setattr(aot, "compile_kernel", fail)


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_it_leaves_with_1_and_says_what_would_help(schedc: Command) -> None:
    said = schedc("doctor")
    assert said.code == 1
    assert "no libtpu" in said.err and "pip install 'jax[tpu]'" in said.err


@pytest.mark.usefixtures("no_compiler")
def test_what_is_needed_and_what_is_not_are_kept_apart(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"pydantic", "gguf"}
    real = doctor.version

    def version(name: str) -> str:
        if name in absent:
            raise doctor.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor, "version", version)
    said = schedc("doctor", "--json")
    findings = {finding["name"]: finding for finding in said.json()["findings"]}
    assert (findings["pydantic"]["state"], findings["pydantic"]["needed"]) == ("missing", True)
    assert (findings["extra weights"]["state"], findings["extra weights"]["needed"]) == ("missing", False)
    assert findings["extra weights"]["repair"] == "pip install 'schedc[weights]'"
    assert any(problem.startswith("pydantic: ") for problem in said.json()["error"]["problems"])
    assert not any("weights" in problem for problem in said.json()["error"]["problems"])


def test_the_smallest_kernel_is_proven(schedc: Command, tmp_path: Path) -> None:
    (tmp_path / "doctor.ir").write_text(doctor.PROGRAM)
    assert schedc("check", str(tmp_path / "doctor.ir")).code == 0

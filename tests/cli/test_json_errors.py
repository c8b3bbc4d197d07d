"""With `--json`, a failure is an object on stdout, and nothing else is; stderr and the exit code stay as they are."""

from pathlib import Path

import pytest

from schedc.errors import CheckFailed

from .conftest import Command


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["compile", "smollm2-135m", "--policy", "rng"], "input", "no policy is called 'rng'; did you mean ring?"),
        (["compile", "smollm2-135m", "--target", "tpu7x:"], "target", "tpu7x:: a topology is missing after the colon"),
        (["compile", "smollm2-135m", "--rows", "17"], "spec", "smollm2-135m:\n  rows: 17 is not between 1 and 16"),
        (["compile", "smollm2-135m", "--context", "many"], "usage", "Invalid value for '--context'"),
        (["compile"], "usage", "Missing argument"),
        (["inspect", "ir", "none"], "input", "unknown model 'none'"),
        (["pack", "qwen3-8b", "-o", "w"], "input", "no package is known to have the weights"),
        (["run", "qwen3-8b", "-p", "a"], "input", "no package is known to have the weights"),
        (["import", "none.json"], "input", "none.json"),
        (["check", "none.ir"], "input", "none.ir: cannot be read"),
        (["emit", "none.ir"], "input", "none.ir: cannot be read"),
    ],
)
def test_bad_input_is_an_object_with_its_kind(schedc: Command, arguments: list[str], kind: str, message: str) -> None:
    said = schedc(*arguments, "--json")
    assert said.code == 2 and said.err != ""
    error = said.json()["error"]
    assert set(error) == {"kind", "message", "problems"}
    assert error["kind"] == kind and error["message"].startswith(message)
    assert error["problems"]


def test_all_faults_of_a_spec_are_listed_one_by_one(schedc: Command) -> None:
    Path("bad.yaml").write_text("name: bad\nhidden: no\n")
    error = schedc("compile", "./bad.yaml", "--json").json()["error"]
    assert error["kind"] == "spec" and "hidden: must be a whole number, not false" in " ".join(error["problems"])
    assert error["message"] == "\n".join(["bad.yaml:", *(f"  {problem}" for problem in error["problems"])])


def test_a_failed_check_is_an_object_too(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from schedc.compiler import check

    def refuse(compiled: object, kernel: Path, *arguments: object) -> None:
        raise CheckFailed(f"{kernel}:7: no")

    monkeypatch.setattr(check, "check", refuse)
    said = schedc("compile", "smollm2-135m", "--context", "64", "-o", "k", "--json")
    assert (said.code, said.json()["folder"]) == (1, "k.failed")
    assert said.json()["error"] == {
        "kind": "check",
        "message": "k.failed/kernel.py:7: no\nthe files are kept in k.failed",
        "problems": ["k.failed/kernel.py:7: no"],
    }


def test_an_interrupt_is_an_object_too(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("schedc.compiler.pipeline.compile_model", interrupt)
    said = schedc("compile", "smollm2-135m", "--no-check", "--json")
    assert (said.code, said.json()["error"]["kind"], said.err) == (130, "interrupted", "interrupted\n")


def test_without_json_stdout_stays_empty(schedc: Command) -> None:
    assert schedc("compile", "smollm2-135m", "--policy", "rng").out == ""


def test_a_policy_that_prints_does_not_disturb_the_answer(schedc: Command) -> None:
    Path("loud.py").write_text(
        "from schedc.schedule.policies.ring import ring\n"
        "print('loaded')\n\n\n"
        "def loud(problem, *, depth: int = 4):\n"
        "    print('asked')\n"
        "    return ring(problem, depth=depth)\n"
    )
    said = schedc("compile", "smollm2-135m", "--context", "64", "--no-check", "--policy", "./loud.py:loud", "--json")
    assert said.code == 0 and said.json()["proof"]["proven"]
    assert set(said.err.split()) == {"loaded", "asked"}

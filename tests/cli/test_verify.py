"""`schedc verify`: all verdicts in one answer; a problem of any of them is exit code 1."""

from types import SimpleNamespace
from typing import Any

import pytest

from .conftest import Command, Said


def verify(schedc: Command, monkeypatch: pytest.MonkeyPatch, problems: tuple[str, ...], *options: str) -> Said:
    def found(request: Any, progress: Any, seconds: float, dump: tuple[str, ...], reproducer: Any) -> Any:
        assert (request.shape.rows, seconds, dump, reproducer) == (2, 600, (), None)
        lines = [("interpreter", "has an answer")]
        return SimpleNamespace(problems=problems, lines=lambda: lines, to_dict=lambda: {"problems": list(problems)})

    monkeypatch.setattr("schedc.compiler.interpret.verify_model", found)
    return schedc("verify", "smollm2-135m", "--rows", "2", "--no-check", *options)


def test_all_is_well(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = verify(schedc, monkeypatch, ())
    assert (said.code, said.err) == (0, "")
    assert [line.split()[0] for line in said.out.splitlines() if not line.startswith(" ")] == ["proof", "interpreter"]
    assert verify(schedc, monkeypatch, (), "--json").json() == {
        "proven": True, "compiler": None, "interpreter": {"problems": []},
    }  # fmt: skip


def test_a_wrong_kernel_is_exit_code_1_with_its_problems(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = verify(schedc, monkeypatch, ("row 0 is wrong", "a race"), "--json")
    assert said.code == 1
    assert said.err == "error: smollm2-135m: 2 problems:\n  row 0 is wrong\n  a race\n"
    assert said.json()["interpreter"] == {"problems": ["row 0 is wrong", "a race"]}

"""`schedc verify --dump PHASE`: which phases there are, and what is shown of what was compared."""

from typing import Any

import pytest

from schedc.cli.dump_view import show_dump
from schedc.compiler.dumped import dumped, phases_to_dump
from schedc.compiler.interpret import Run
from schedc.compiler.pipeline import Request
from schedc.errors import UserError
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

from .conftest import Command, refused


def request(model: str) -> Request:
    return Request(load_spec(model), parse_target("tpu7x"), StepShape(1, 1024))


def test_phases_are_those_of_the_shrunk_model_that_leave_what_the_reference_has():
    smol = request("smollm2-135m")
    assert phases_to_dump(smol, "attend") == ("attend",)
    every = phases_to_dump(smol, "all")
    assert every[:4] == ("embed", "mixer_norm", "qkv", "heads") and every[-1] == "head" and "settle" not in every
    with pytest.raises(UserError, match="the shrunk model, which is what is interpreted, has no such phase"):
        phases_to_dump(smol, "atend")
    with pytest.raises(
        UserError, match=r"--dump settle: leaves nothing that the reference has.* are embed, mixer_norm,"
    ):
        phases_to_dump(smol, "settle")
    gemma = request("gemma-3-1b")
    assert {"attend_0_0", "attend_0_1"} <= set(phases_to_dump(gemma, "all"))
    assert phases_to_dump(gemma, "attend_0_1") == ("attend_0_1",)
    of_both_kinds = phases_to_dump(gemma, "attend")
    assert {"attend_0_0", "attend_0_1"} <= set(of_both_kinds)
    assert all(name.startswith("attend_") for name in of_both_kinds)
    with pytest.raises(UserError, match="has no such phase"):
        phases_to_dump(gemma, "attend_0")


def one(step: int, phase: str, layer: int | None, wrong: bool) -> dict[str, Any]:
    found = {"element": [1, 2], "got": 3.0, "expected": 1.0} if wrong else dict.fromkeys(("element", "got", "expected"))
    sizes = {"largest": 2.0 if wrong else 0.0, "limit": 0.5, "ratio": 4.0 if wrong else 0.0}
    return {
        "step": step,
        "phase": phase,
        "layer": layer,
        "what": f"{phase}.out",
        "device": None,
        "row": 0,
        "note": "",
        **sizes,
        **found,
    }


DUMP = (
    *(one(0, phase, layer, False) for layer in (0, 1) for phase in ("heads", "join")),
    *(one(1, "heads", 0, False), one(1, "join", 0, False), one(1, "heads", 1, True), one(1, "heads", 1, False)),
    *(one(1, "join", 1, True), one(1, "head", None, True)),
)  # fmt: skip


def run(dump: tuple[dict[str, Any], ...]) -> Run:
    return Run("f32", "eager", 1.0, 2, 0.0, 1.0, 0.0, 1.0, (), dump)


def test_comparisons_end_with_the_first_phase_that_differs():
    found = dumped(run(DUMP), ("heads", "join"))
    assert found["first"] == DUMP[6] and found["compared"] == list(DUMP[4:8]) and found["steps"] == 2
    fine = dumped(run(DUMP[:4]), ("heads", "join"))
    assert fine["first"] is None and fine["compared"] == list(DUMP[:4])


def test_the_first_phase_that_differs_is_shown_and_nothing_behind_it(capsys: pytest.CaptureFixture[str]):
    show_dump(run(DUMP), ("heads", "join"))
    said = capsys.readouterr().out
    assert "the first difference of the shrunk model is in step 1 in phase heads of layer 1" in said
    assert "2 comparisons before it agree" in said
    assert "heads.out" in said and "[1, 2]" in said and "join.out" not in said and "head.out" not in said
    show_dump(run(DUMP[:4]), ("heads",))
    said = capsys.readouterr().out
    assert "nothing differs in what phase heads leaves in 1 steps of the shrunk model" in said and "row 0:" not in said
    show_dump(run(({**DUMP[0], "note": "nearly equal: 3 for 4"},)), ("heads",))
    assert "phase heads of layer 0, row 0: nearly equal: 3 for 4; taken as the kernel" in capsys.readouterr().out


def test_bad_phases_and_folders_are_refused_before_anything_runs(schedc: Command, tmp_path):
    model = ("smollm2-135m", "--context", "256", "--no-check")
    assert "has no such phase" in refused(schedc("verify", *model, "--dump", "atend", "--reproducer", "new"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    assert "is not empty" in refused(schedc("verify", *model, "--reproducer", "full"))

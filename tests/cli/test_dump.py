"""`schedc verify --dump PHASE`: which layers a phase belongs to."""

import pytest

from schedc.cli.dump_view import dumped, layers_of
from schedc.compiler.dump import LOGITS
from schedc.compiler.interpret import Run
from schedc.compiler.pipeline import Request
from schedc.errors import UserError
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

from .conftest import Command, refused


def request(model: str) -> Request:
    return Request(load_spec(model), parse_target("tpu7x"), StepShape(1, 1024))


def test_a_phase_belongs_to_the_layers_of_its_place():
    assert layers_of(request("smollm2-135m"), "attend") == (0, 1, 2)
    assert layers_of(request("smollm2-135m"), "head") == (LOGITS,)
    assert layers_of(request("smollm2-135m"), "all") == (0, 1, 2, LOGITS)
    two = request("gemma-3-1b")
    first, other = layers_of(two, "attend_0_0"), layers_of(two, "attend_0_1")
    assert first and other and not set(first) & set(other)
    with pytest.raises(UserError, match="--dump atend: the shrunk model has no such phase; it has prologue"):
        layers_of(request("smollm2-135m"), "atend")


def test_the_first_difference_of_the_asked_layers_comes_first():
    def one(step: int, layer: int, wrong: bool) -> dict[str, object]:
        return {"step": step, "layer": layer, "what": "k", "row": 0, "element": [1, 2] if wrong else None}

    dump = (one(0, 0, False), one(0, 1, True), one(1, 0, False), one(1, 1, False), one(1, 2, True))
    run = Run("f32", "eager", 1.0, 2, 0.0, 1.0, 0.0, 1.0, (), dump)
    assert dumped(run, (0, 2))["first"] == dump[4] and dumped(run, (0, 2))["compared"] == [dump[2], dump[4]]
    assert dumped(run, (0,)) == {"run": "f32, eager", "first": None, "compared": [dump[0]]}


def test_bad_phases_and_folders_are_refused_before_anything_runs(schedc: Command, tmp_path):
    model = ("smollm2-135m", "--context", "256", "--no-check")
    assert "has no such phase" in refused(schedc("verify", *model, "--dump", "atend"))
    assert "has no such phase" in refused(schedc("verify", *model, "--dump", "atend", "--reproducer", "new"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    assert "is not empty" in refused(schedc("verify", *model, "--reproducer", "full"))

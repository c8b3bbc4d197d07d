"""What is one field away from Kimi K3 needs no other code: it is scheduled, proven and compiled like it."""

from pathlib import Path

import pytest

from schedc.compiler.check import check
from schedc.compiler.pipeline import Request, build, compile_model, limits_of
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.models.kimi_k3_variants import CHANGES, RATIO, variants

pytestmark = pytest.mark.kernel

COMPILED = ("fewer experts", "half the chosen experts", "blocks that no period divides", RATIO, "half the layers")


def request(model: str, name: str) -> Request:
    full = model == "kimi-k3"
    target, devices = ("tpu7x:2x2x4", 32) if full else ("tpu7x:2x2x1", 4)
    spec = variants(load_spec(model))[name]
    return Request(spec, parse_target(target, devices), StepShape(1, 2048 if full else 96, devices=devices))


def test_there_are_twenty_of_them_and_all_differ() -> None:
    made = variants(load_spec("kimi-k3-mini"))
    assert len({spec.model_dump_json() for spec in [*made.values(), load_spec("kimi-k3-mini")]}) == len(made) + 1 > 20


@pytest.mark.parametrize("name", CHANGES)
def test_a_scaled_down_one_is_proven(name: str) -> None:
    is_proven(request("kimi-k3-mini", name))


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("name", COMPILED)
def test_a_scaled_down_one_is_compiled(name: str, tmp_path: Path) -> None:
    is_compiled(request("kimi-k3-mini", name), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGES)
def test_one_of_full_size_is_proven(name: str) -> None:
    is_proven(request("kimi-k3", name))


@pytest.mark.long
@pytest.mark.parametrize("name", COMPILED)
def test_one_of_full_size_is_compiled(name: str, tmp_path: Path) -> None:
    is_compiled(request("kimi-k3", name), tmp_path)


def is_proven(asked: Request) -> None:
    verdict = verify(build(asked)[1], limits_of(asked.target))
    assert verdict.proven, str(verdict)


def is_compiled(asked: Request, folder: Path) -> None:
    compiled = compile_model(asked)
    path = folder / "kernel.py"
    path.write_text(compiled.kernel.source)
    assert check(compiled, path).problems == ()

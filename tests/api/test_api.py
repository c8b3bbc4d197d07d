"""What `import schedc` gives is what the command gives."""

import subprocess
import sys
from pathlib import Path

import pytest

import schedc
from schedc.errors import SpecError, UserError
from schedc.ir.text_print import print_program


@pytest.fixture(scope="module")
def made() -> schedc.Compilation:
    return schedc.compile("smollm2-135m", "tpu7x", rows=2, context=1024, settings={"depth": 4})


def test_importing_schedc_imports_nothing_heavy() -> None:
    code = "import schedc, sys; print(*[m for m in ('jax', 'numpy', 'numba', 'schedc.api') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "\n"


def test_every_name_of_the_api_is_there_and_documented() -> None:
    for name in set(schedc.__all__) - {"__version__"}:
        assert getattr(schedc, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'compyle'"):
        schedc.compyle  # noqa: B018


def test_a_compilation_saves_what_the_command_writes(made: schedc.Compilation, tmp_path: Path) -> None:
    command = ["compile", "smollm2-135m", "--rows", "2", "--context", "1024", "--set", "depth=4", "--no-check"]
    subprocess.run([sys.executable, "-m", "schedc.cli.main", *command, "-o", tmp_path / "by_command"], check=True)
    folder = made.save(tmp_path / "by_api")
    names = sorted(path.name for path in (tmp_path / "by_command").iterdir())
    assert names == sorted(path.name for path in folder.iterdir())
    for name in ("kernel.py", "program.ir", "manifest.json"):
        assert (folder / name).read_text() == (tmp_path / "by_command" / name).read_text()
    assert (folder / "kernel.py").read_text() == made.source


def test_a_prediction_is_that_of_the_compilation(made: schedc.Compilation) -> None:
    predicted = schedc.predict("smollm2-135m", "tpu7x", rows=2, context=1024, settings={"depth": 4})
    assert print_program(predicted.program) == print_program(made.program)
    assert predicted.report == made.report
    assert predicted.plan.rings[0].slots == 4


def test_the_timeline_has_every_event_of_the_step(made: schedc.Compilation) -> None:
    timeline = made.timeline()
    assert timeline.step_ns / 1e3 == pytest.approx(made.report.step_us, abs=1e-3)
    assert sum(event.lane == "hbm" for event in timeline.events) == made.report.transfers
    late = made.timeline({"position": [1000, 1000]})
    assert late.step_ns > made.timeline({"position": [0, 0]}).step_ns


def test_a_config_file_is_a_model(made: schedc.Compilation) -> None:
    config = Path(__file__).parents[1] / "data" / "configs" / "Qwen3-0.6B.json"
    assert schedc.read_spec(config).num_layers == 28
    assert schedc.read_spec(made.spec) is made.spec


def test_it_shows_itself_in_a_notebook(made: schedc.Compilation) -> None:
    html = made._repr_html_()
    assert html.count("<rect") > len(made.program.buffers) // 2
    assert f"{made.report.step_us:,.1f} µs" in html
    assert repr(made).startswith("<Compilation smollm2-135m: tpu7x:2x2x1")


def test_bad_input_is_said_as_on_the_command_line() -> None:
    with pytest.raises(UserError, match="no policy is called 'rign'; did you mean ring"):
        schedc.compile("smollm2-135m", policy="rign")
    with pytest.raises(UserError, match="smollm2"):
        schedc.predict("smollm2-135")
    with pytest.raises(SpecError):
        schedc.predict("smollm2-135m", rows=99)
    with pytest.raises(TypeError, match="unexpected keyword argument 'polcy'; did you mean policy"):
        schedc.compile("smollm2-135m", polcy="ring")


def test_what_is_dumped_is_checked_before_anything_runs(
    made: schedc.Compilation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []
    monkeypatch.setattr("schedc.compiler.interpret.verify_model", lambda *given: asked.append(given))
    with pytest.raises(UserError, match="has no such phase; those that can be compared are embed, "):
        made.verify(dump="atend")
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UserError, match="is not empty"):
        made.verify(reproducer=tmp_path)
    assert not asked
    made.verify(5, "attend", tmp_path / "new")
    made.verify(dump="all")
    assert asked[0] == (made.request, None, 5, ("attend",), tmp_path / "new")
    assert {"embed", "attend", "head"} < set(asked[1][3]) and asked[1][4] is None


@pytest.mark.kernel
@pytest.mark.slow
def test_it_is_checked_and_verified_as_by_the_command(made: schedc.Compilation) -> None:
    assert made.check().problems == ()
    found = made.verify(dump="heads")
    assert not found.problems
    assert {one["phase"] for run in found.runs for one in run.dump} == {"heads"}


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"window_cache": "rong"}, "window_cache: must be 'context' or 'ring', not 'rong'"),
        (
            {"settings": [1], "taps": "1"},
            "settings: must be a mapping of keys, not a list\ntaps: must be a list, not '1'",
        ),
        ({"settings": {"depth": "x"}}, "settings: must be a whole number, not 'x'"),
        ({"logits": 3}, "logits: must be true or false, not 3"),
        ({"kv": "fp9"}, "kv: must be 'bf16', 'f32' or 'fp8', not 'fp9'"),
        (
            {"rows": "2", "context": 100.5},
            "rows: must be a whole number, not '2'\ncontext: must be a whole number, not 100.5",
        ),
        ({"policy": "mine.yaml"}, "--policy mine.yaml: is a plan, which says all of its step; give it by --plan"),
    ],
)
def test_options_are_held_to_their_types(options: dict, fault: str) -> None:
    with pytest.raises(UserError) as refused:
        schedc.predict("smollm2-135m", **options)
    assert str(refused.value) == fault


def test_a_plan_says_the_step_it_is_for() -> None:
    made = schedc.predict("gpt-oss-120b", plan="gpt-oss-120b")
    assert (made.request.target.devices_used, made.request.policy) == (8, "plan:gpt-oss-120b")
    for other in ({"rows": 1}, {"target": "tpu7x:2x2x1"}):
        with pytest.raises(UserError, match="is for "):
            schedc.predict("kimi-k3", plan="kimi-k3-batch-4", **other)

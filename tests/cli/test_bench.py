"""`schedc bench` without a TPU, and `schedc calibrate` with bad input."""

from pathlib import Path

from tests.cli.conftest import Command, refused


def test_bench_refuses_where_there_is_no_tpu_and_writes_nothing(schedc: Command, monkeypatch) -> None:
    monkeypatch.setattr("schedc.run.bench.require_tpu.__defaults__", (lambda: False,))
    assert schedc("compile", "smollm2-135m", "--context", "512", "--no-check", "-o", "out").code == 0
    said = refused(schedc("bench", "out"), code=1)
    assert said.startswith("there is no TPU on this machine")
    assert "needs 1 device of TPU7x" in said
    assert not Path("measurements.csv").exists()
    said = refused(schedc("bench", "out", "--position", "500"))
    assert said == "position 500 and 32 steps go beyond the context of 512; use --position 480 or less"


def test_calibrate_refuses_what_it_cannot_use(schedc: Command) -> None:
    assert refused(schedc("calibrate", "--write", "mine.yaml")).startswith("--write wants --fit")
    assert "no calibration" in refused(schedc("calibrate", "--target", "v6e:2x4"))
    Path("mine.csv").write_text("a,b\n")
    assert "the columns must be" in refused(schedc("calibrate", "--measurements", "mine.csv"))

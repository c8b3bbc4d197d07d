"""Input that no one writes by hand, and options that come too late."""

from pathlib import Path

from schedc.spec.dump import dump_spec
from schedc.spec.load import load_spec

from .conftest import Command, refused


def test_brackets_without_end_are_a_message(schedc: Command) -> None:
    Path("deep.yaml").write_text("[" * 5000)
    Path("deep.json").write_text("[" * 100_000)
    assert refused(schedc("compile", "./deep.yaml", "--no-check"), code=2).strip().endswith("nested too deeply")
    assert refused(schedc("import", "deep.json"), code=2).strip().endswith("nested too deeply")


def test_numbers_of_more_digits_than_python_reads_and_keys_that_stand_twice_are_messages(schedc: Command) -> None:
    digits = "9" * 5000
    Path("long.yaml").write_text(f"name: long\nhidden: {digits}\n")
    Path("long.json").write_text(f'{{"hidden_size": {digits}}}')
    Path("twice.json").write_text('{"model_type": "llama", "model_type": "qwen3"}')
    for command in (("compile", "./long.yaml"), ("import", "long.json")):
        assert "Exceeds the limit (4300 digits)" in refused(schedc(*command))
    assert refused(schedc("import", "twice.json")) == "twice.json: duplicate key 'model_type'"


def test_a_byte_order_mark_is_no_part_of_a_file(schedc: Command) -> None:
    Path("spec.yaml").write_text("\ufeff" + dump_spec(load_spec("smollm2-135m")), encoding="utf-8")
    assert schedc("compile", "./spec.yaml", "--context", "64", "--no-check").code == 0


def test_a_program_of_a_compiled_folder_is_not_emitted_beside_its_kernel(schedc: Command) -> None:
    assert schedc("compile", "smollm2-135m", "--context", "64", "--no-check", "-o", "made").code == 0
    assert refused(schedc("emit", "made/program.ir")).startswith("made: is written by `schedc compile`")
    assert schedc("compile", "smollm2-135m", "--context", "64", "--no-check", "-o", "made").code == 0


def test_a_million_layers_are_refused(schedc: Command) -> None:
    text = dump_spec(load_spec("smollm2-135m"))
    assert "repeat: 30" in text
    Path("tall.yaml").write_text(text.replace("repeat: 30", "repeat: 1000000"))
    assert "layers[0].repeat: " in refused(schedc("compile", "./tall.yaml", "--no-check"), code=2)


def test_rows_cannot_be_changed_after_compiling(schedc: Command) -> None:
    assert schedc("compile", "smollm2-135m", "--context", "64", "--no-check", "-o", "made").code == 0
    message = refused(schedc("inspect", "buffers", "made", "--rows", "4"), code=2)
    assert message.strip() == "made: has been compiled for rows 1; --rows cannot change that"


def test_a_program_where_a_model_is_wanted_is_told_apart(schedc: Command) -> None:
    Path("mine.ir").write_text("program p {\n}\n")
    commands = (
        "compile --no-check",
        "inspect placement",
        "inspect decisions",
        "explain fit",
        "explore",
        "sweep",
    )
    for command in commands:
        message = refused(schedc(*command.split(), "./mine.ir"), code=2)
        assert message.startswith("mine.ir: is a program, not a model spec, which is needed here"), command

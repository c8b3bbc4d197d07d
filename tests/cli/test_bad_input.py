"""Bad input, each with the whole message that the user sees: exit code 2, or 1 where a check says no."""

from pathlib import Path

import pytest

from schedc.spec.dump import dump_spec
from schedc.spec.load import load_spec
from schedc.weights.fetch import fetch_weights

from .conftest import Command, refused

BAD_SPEC = """\
name: bad
hidden: "576"
vocab: 49152
max_positon: 8192
embedding: {tied: true}
layers:
- repeat: 0
  pattern:
  - mixer: {kind: gqa, heads: 9, kv_heads: 3, head_dim: 64, rope: {theta: 100000.0}}
    feed_forward: {kind: dense, width: 1536, gated: maybe, activation: sliu}
    norm: {kind: rms, eps: 1.0e-05}
final_norm: {kind: rms, eps: 1.0e-05}
"""

SMALL_CHIP = """\
base: tpu7x
capability:
  vmem_bytes: {{value: {bytes}, source: "a test"}}
  vmem_usable_bytes: {{value: {bytes}, source: "a test"}}
  vmem_default_limit_bytes: {{value: {bytes}, source: "a test"}}
"""


def test_all_faults_of_a_spec_come_at_once_with_their_key_paths(schedc: Command) -> None:
    Path("bad.yaml").write_text(BAD_SPEC)
    assert refused(schedc("compile", "./bad.yaml")) == (
        "bad.yaml:\n"
        "  max_positon: unknown key; nearest: max_position\n"
        "  hidden: must be a whole number, not '576'\n"
        "  max_position: missing\n"
        "  layers[0].repeat: must be more than 0, not 0\n"
        "  layers[0].pattern[0].feed_forward.gated: must be true or false, not 'maybe'\n"
        "  layers[0].pattern[0].feed_forward.activation: "
        "must be 'silu', 'gelu', 'gelu_tanh', 'relu', 'relu2', 'swiglu_clamped' or 'situ', not 'sliu'"
    )


def test_heads_that_do_not_divide(schedc: Command) -> None:
    schedc("import", config("mlc-smollm2_135m.json"), "-o", "m.yaml")
    Path("m.yaml").write_text(Path("m.yaml").read_text().replace("kv_heads: 3", "kv_heads: 2"))
    assert refused(schedc("compile", "m.yaml")) == (
        "m.yaml:\n  layers[0].pattern[0].mixer.heads: 9 heads do not divide into 2 kv heads; use a multiple of 2"
    )


def config(name: str) -> str:
    return str(Path(__file__).parents[1] / "data" / "configs" / name)


def test_a_schedule_that_does_not_fit_names_the_buffers_the_bytes_and_what_would_fit(schedc: Command) -> None:
    Path("small.yaml").write_text(SMALL_CHIP.format(bytes=12 * 2**20))
    small = ("--target", "./small.yaml", "--no-check")
    lines = refused(schedc("compile", "smollm2-135m", *small, "--set", "depth=8"), code=1).splitlines()
    assert lines[0] == (
        "smollm2-135m does not fit the VMEM of small:2x2x1 under policy ring: "
        "6,173,696 bytes too many (17,424,384 of 11,250,688)"
    )
    assert lines[2:] == [
        "  weights_slot in pool stream: 15,728,640 bytes",
        "  would fit: --set depth=4",
        "         or: --set slot_mib=1",
        "         or: --policy double_buffer without --set depth",
        "         or: --policy just_in_time without --set depth",
    ]
    for setting in (("depth=4",), ("depth=8", "--set", "slot_mib=1")):
        assert schedc("compile", "smollm2-135m", *small, "--set", *setting).code == 0
    assert schedc("compile", "smollm2-135m", *small, "--set", "depth=5").code == 1
    assert schedc("compile", "smollm2-135m", *small).code == 0


def test_two_mib_of_vmem_name_the_clash_and_what_would_fit_and_leave_no_output(schedc: Command) -> None:
    Path("tiny.yaml").write_text(SMALL_CHIP.format(bytes=2 * 2**20))
    lines = refused(schedc("compile", "smollm2-135m", "--target", "./tiny.yaml", "--no-check"), code=1).splitlines()
    assert lines[0] == (
        "smollm2-135m does not fit the VMEM of tiny:2x2x1 under policy ring: "
        "2,929,664 bytes too many (4,743,168 of 1,813,504)"
    )
    assert lines[1] == "  fullest in phase fetch and phase heads"
    assert lines[2:] == [
        "  weights_slot in pool stream: 3,932,160 bytes",
        "  would fit: --set slot_mib=0.5",
    ]
    assert [path.name for path in Path("out").iterdir()] == []
    setting = ("--set", "slot_mib=0.5")
    assert schedc("compile", "smollm2-135m", "--target", "./tiny.yaml", "--no-check", *setting).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["smolm2-135m"],
            "unknown model 'smolm2-135m'; nearest: smollm2-135m, olmo-2-7b; "
            "a spec of your own is given as a file, ./smolm2-135m.yaml",
        ),
        (["./none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (
            ["smollm2-135m", "--target", "tpu7"],
            "unknown target 'tpu7'; nearest: tpu7x; a chip of your own is given as a file, ./tpu7.yaml",
        ),
        (
            ["smollm2-135m", "--target", "tpu7x:2x2"],
            "tpu7x:2x2: topology 2x2 has 2 dimensions, tpu7x has 3, as in 2x2x1",
        ),
        (
            ["smollm2-135m", "--policy", "rng"],
            "no policy is called 'rng'; did you mean ring? Your own: ./file.py:function",
        ),
        (["smollm2-135m", "--policy", "./none.py:f"], "policy file none.py does not exist"),
        (
            ["smollm2-135m", "--wire", "bf16"],
            "--wire bf16: one device has nobody to talk to; give --devices, or leave it out",
        ),
        (
            ["smollm2-135m", "--set", "dpth=4"],
            "policy ring has no setting dpth; its settings: depth (default 0), slot_mib (default 2.0), "
            "expert_slots (default 0), expert_mib (default 4.0), experts_at_once (default 1), "
            "experts_by_number (default 0), whole_sums (default 0), kv_slots (default 2)",
        ),
        (
            ["smollm2-135m", "--set", "depth", "--set", "slot_mib=nan", "--set", "a=1", "--set", "a=2"],
            "--set depth: must be like depth=8 or slot_mib=0.5\n"
            "--set slot_mib=nan: must be like depth=8 or slot_mib=0.5\n"
            "--set a=2: a is set twice",
        ),
        (
            ["smollm2-135m", "--set", "depth=100000"],
            "policy ring gave a plan that cannot be built:\n  rings of 100002 slots in all (weights 100000, small 2) "
            "need a semaphore a slot, and tpu7x has 3831; use fewer slots",
        ),
        (["smollm2-135m", "--devices", "33"], "tpu7x:2x2x4 has 32 devices (16 chips of 2); 33 cannot be used"),
        (
            ["smollm2-135m", "--rows-are", "tokens", "--rows", "8", "--steps-per-call", "4", "--no-check"],
            "--rows-are tokens: what a step accepts is known behind it, so not 4 steps a call; use 1",
        ),
        (["smollm2-135m", "--devices", "0"], "tpu7x:2x2x1 has 8 devices (4 chips of 2); 0 cannot be used"),
        (["smollm2-135m", "--rows", "17"], "smollm2-135m:\n  rows: 17 is not between 1 and 16"),
        (["smollm2-135m", "--rows", "0"], "smollm2-135m:\n  rows: 0 is not between 1 and 16"),
        (["smollm2-135m", "--rows", "0", "--devices", "2"], "smollm2-135m:\n  rows: 0 is not between 1 and 16"),
        (
            ["smollm2-135m", "--form", "int8=dequantised", "--form", "int8=scaled_after"],
            "--form int8=scaled_after: int8 is to be dequantised already; give one of them",
        ),
        (["smollm2-135m", "--taps", "3;4"], "--taps 3;4: must be numbers of layers, counted from 0, as in 23,47"),
        (["smollm2-135m", "--taps", "29,30"], "smollm2-135m:\n  taps: 30 is not a layer, they are 0 to 29"),
        (
            ["smollm2-135m", "--context", "9000"],
            "smollm2-135m:\n  context: 9000 is not between 1 and max_position 8192",
        ),
    ],
)
def test_bad_arguments_of_compile(schedc: Command, arguments: list[str], message: str) -> None:
    assert refused(schedc("compile", *arguments, "--no-check")) == message


def test_a_format_for_weights_that_the_model_lacks_is_refused(schedc: Command) -> None:
    Path("mine.yaml").write_text(dump_spec(load_spec("smollm2-135m")) + "quantization: {experts: int8}\n")
    said = refused(schedc("compile", "./mine.yaml", "--no-check"))
    assert said == (
        "smollm2-135m:\n  quantization.experts: the model has none, only attention, dense, head; leave it out"
    )


def test_a_form_that_changes_nothing_is_refused(schedc: Command) -> None:
    said = schedc("compile", "smollm2-135m", "--context", "256", "--no-check", "--form", "mxfp4=dequantised")
    assert refused(said) == "--form mxfp4=dequantised has no effect: the program takes bf16_direct; leave it out"


def test_bad_usage_is_exit_code_2_and_says_what_there_is(schedc: Command) -> None:
    said = schedc("compile", "smollm2-135m", "--weights", "int3")
    assert (said.code, said.out) == (2, "")
    assert "'--weights'" in said.err and "'int3' is not one of 'bf16', 'f32'" in " ".join(
        said.err.replace("│", " ").split()
    )
    said = schedc("compil")
    assert said.code == 2 and "No such command 'compil'. Did you mean 'compile'?" in said.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("file/out", "file/out: cannot be written: file is not a folder"),
        ("file", "file: cannot be written: file is not a folder"),
        (
            "mine",
            "mine: is not overwritten, because it holds what `schedc compile` does not write: notes.txt; "
            "give another folder with -o",
        ),
    ],
)
def test_an_output_folder_that_cannot_be_written_is_refused_before_the_work(
    schedc: Command, monkeypatch: pytest.MonkeyPatch, given: str, message: str
) -> None:
    Path("file").write_text("")
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("precious")

    def work(request: object) -> None:
        raise AssertionError("compiled, although the output cannot be written")

    monkeypatch.setattr("schedc.compiler.pipeline.compile_model", work)
    assert refused(schedc("compile", "smollm2-135m", "-o", given)) == message
    assert sorted(path.name for path in Path().iterdir()) == ["file", "mine"]


def test_a_read_only_place_is_refused(schedc: Command) -> None:
    message = refused(schedc("compile", "smollm2-135m", "--no-check", "-o", "/proc/out"))
    assert message.startswith("/proc/out: cannot be written: ")


def test_a_truncated_weights_file_is_refused_with_its_bytes(schedc: Command) -> None:
    weights = fetch_weights("smollm2-135m")
    with weights.open("rb") as file:
        Path("cut.gguf").write_bytes(file.read(50_000_000))
    assert refused(schedc("pack", "smollm2-135m", "--weights-file", "cut.gguf", "-o", "w")) == (
        "cut.gguf: truncated: expected 98,362,432 bytes, found 50,000,000; "
        "tensor blk.16.ffn_down.weight ends at byte 50,153,536; fetch the file again"
    )
    assert not Path("w").exists()


def test_the_weights_of_another_model_are_refused_weight_by_weight(schedc: Command) -> None:
    weights = fetch_weights("smollm2-135m")
    lines = refused(schedc("pack", "qwen3-0.6b", "--weights-file", str(weights), "-o", "w")).splitlines()
    assert lines[:3] == [
        f"{weights}: not the weights of qwen3-0.6b:",
        "  embed: expected [151936, 1024], found [49152, 576]",
        "  final_norm.weight: expected [1024], found [576]",
    ]


def test_what_is_no_weights_file_is_refused(schedc: Command) -> None:
    Path("w.bin").write_bytes(b"12")
    assert refused(schedc("pack", "smollm2-135m", "--weights-file", "w.bin", "-o", "w")) == (
        "w.bin: not a safetensors file: its first 8 bytes give no header length"
    )


def test_weights_that_no_package_has_must_be_given(schedc: Command) -> None:
    assert refused(schedc("run", "qwen3-8b", "--prompt", "a")) == (
        "no package is known to have the weights of 'qwen3-8b'; there are: smollm2-135m; "
        "give a GGUF or safetensors file instead"
    )


def test_prompts_that_cannot_be_decoded(schedc: Command) -> None:
    long = "one two three four five"
    assert refused(schedc("run", "smollm2-135m", "-p", "", "-p", long, "--context", "4")) == (
        "prompt 1 is empty\nprompt 2 has 5 tokens, the kernel's context is 4; raise --context"
    )


def test_a_config_is_refused_by_key(schedc: Command) -> None:
    lines = refused(schedc("import", config("falcon-40b.json"))).splitlines()
    assert lines[0].endswith("falcon-40b.json: cannot be expressed as a model spec:")
    assert "  parallel_attn: attention and feed-forward in parallel are not supported" in lines


def test_a_key_that_is_read_in_several_places_is_refused_once(schedc: Command) -> None:
    text = Path(config("Meta-Llama-3.1-8B.json")).read_text()
    Path("c.json").write_text(text.replace('"hidden_size": 4096', '"hidden_size": "4096"'))
    assert refused(schedc("import", "c.json")) == (
        "c.json: cannot be expressed as a model spec:\n  hidden_size: '4096' is not a whole number"
    )


@pytest.mark.parametrize("verb", [["inspect", "ir"], ["pack", "-o", "w"], ["run", "-p", "a"]])
def test_a_folder_that_is_no_output_is_refused(schedc: Command, verb: list[str]) -> None:
    Path("empty").mkdir()
    assert refused(schedc(*verb, "empty")) == (
        "empty: is not a folder written by `schedc compile`: it has no manifest.json"
    )


def test_a_damaged_or_old_output_is_refused(schedc: Command) -> None:
    Path("out").mkdir()
    manifest = Path("out/manifest.json")
    manifest.write_text("{")
    assert refused(schedc("inspect", "ir", "out")) == "out/manifest.json: is not a manifest of schedc; compile again"
    manifest.write_text('{"interface": 0, "spec": {}, "weights": {"layouts": []}}')
    assert refused(schedc("inspect", "ir", "out")) == (
        "out/manifest.json: has interface 0, this schedc has 3; compile again"
    )

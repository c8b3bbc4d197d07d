"""Models, targets, policies, and import: what there is, for people and for programs."""

from pathlib import Path

from schedc.spec.load import list_models, load_spec, parse_spec

from .conftest import Command
from .test_bad_input import config


def test_models(schedc: Command) -> None:
    entries = schedc("models", "--json").json()
    assert [entry["name"] for entry in entries] == list_models()
    smollm2 = next(entry for entry in entries if entry["name"] == "smollm2-135m")
    assert smollm2 == {
        "name": "smollm2-135m",
        "parameters": 134_515_008,
        "layers": 30,
        "hidden": 576,
        "heads": 9,
        "kv_heads": 3,
        "head_dim": 64,
        "vocab": 49152,
        "max_position": 8192,
        "weights_fetched": True,
    }
    hybrid = next(entry for entry in entries if entry["name"] == "kimi-k3")
    assert (hybrid["heads"], hybrid["head_dim"], hybrid["layers"]) == (96, 192, 93)
    rows = [line.split() for line in schedc("models").out.splitlines()]
    assert ["smollm2-135m", "134.5", "M", "30", "576", "9", "3", "64", "49,152", "8,192", "fetched"] in rows


def test_targets_count_chips_and_devices(schedc: Command) -> None:
    entries = {entry["name"]: entry for entry in schedc("targets", "--json").json()}
    assert (entries["tpu7x:2x2x1"]["chips"], entries["tpu7x:2x2x1"]["devices"]) == (4, 8)
    assert (entries["v6e:2x2"]["chips"], entries["v6e:2x2"]["devices"]) == (4, 4)
    rows = [line.split() for line in schedc("targets").out.splitlines()]
    assert ["tpu7x:2x2x1", "TPU7x", "(Ironwood)", "4", "8", "1", "63.94", "94.75", "3,472", "1,900"] in rows


def test_policies_and_their_settings(schedc: Command) -> None:
    entries = {entry["name"]: entry for entry in schedc("policies", "--json").json()}
    assert entries["ring"] == {
        "name": "ring",
        "about": "All weights pass through one ring of equal slots in the order of their use.",
        "settings": {
            "depth": 0,
            "slot_mib": 2.0,
            "expert_slots": 0,
            "expert_mib": 4.0,
            "experts_at_once": 1,
            "experts_by_number": 0,
            "whole_sums": 0,
            "kv_slots": 2,
        },
        "default": True,
    }
    assert {"double_buffer", "earliest_fit", "just_in_time", "next_layer_attention"} <= entries.keys()
    assert "ring (default) depth=0 slot_mib=2" in " ".join(schedc("policies").out.split())


def test_import_prints_a_spec_or_writes_it(schedc: Command) -> None:
    text = schedc("import", config("mlc-smollm2_135m.json"), "--name", "smollm2-135m").out
    assert parse_spec(text, "printed") == load_spec("smollm2-135m")
    said = schedc("import", config("mlc-smollm2_135m.json"), "--name", "smollm2-135m", "-o", "m.yaml")
    assert said.out == "wrote m.yaml: 30 layers, 134,515,008 parameters\n"
    assert Path("m.yaml").read_text() == text
    assert [path.name for path in Path().iterdir()] == ["m.yaml"]

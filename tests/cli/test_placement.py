"""`schedc inspect placement`, rules in a file, and what is said of a model that no device has room for."""

from pathlib import Path

import pytest

from schedc.spec.load import load_spec
from schedc.yaml_text import format_yaml

from .conftest import Command, refused

SMALL = ("llama-3.1-8b", "--context", "4096")


def families(said) -> dict:
    assert said.code == 0, said.err
    return said.json()["families"]


def test_every_family_is_listed_with_what_a_device_has_and_its_bytes(schedc: Command) -> None:
    found = families(schedc("inspect", "placement", *SMALL, "--devices", "8", "--json"))
    said = {name: [statement["what"] for statement in family["held"]] for name, family in found.items()}
    assert said["attention"] == ["4 of 32 query heads, 1 of 8 kv heads"]
    assert said["dense"] == ["1792 of 14336 columns"]
    assert said["head"] == ["16128 of 128256 columns"]
    assert said["cache"] == ["1 of 8 kv heads"]
    assert found["dense"]["device"] * 8 == found["dense"]["once"]
    assert found["embedding"]["device"] == found["embedding"]["once"] == 128256 * 4096 * 2


def test_the_table_says_whether_it_fits(schedc: Command) -> None:
    said = schedc("inspect", "placement", "qwen2.5-7b", "--devices", "8")
    lines = said.out.splitlines()
    assert lines[0] == "tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 8 devices used"
    attention = next(line for line in lines if line.startswith("attention"))
    assert "7 of 28 query heads, 1 of 4 kv heads" in attention and "50.0%" in attention  # Four devices hold padding.
    assert lines[-1].startswith("3,020.5 of 97,024.0 MiB a device (3%): fits")


def test_rules_of_a_file_are_followed(schedc: Command) -> None:
    Path("rules.yaml").write_text("attention: replicated\ndense: replicated\n")
    given = ("inspect", "placement", *SMALL, "--devices", "4", "--placement", "rules.yaml", "--json")
    found = families(schedc(*given))
    assert [found[name]["held"][0]["rule"] for name in ("attention", "dense", "head")] == [
        "replicated", "replicated", "vocab",
    ]  # fmt: skip
    assert found["attention"]["device"] == found["attention"]["once"]


def test_a_folder_keeps_its_placement(schedc: Command) -> None:
    Path("rules.yaml").write_text("dense: replicated\n")
    given = ("smollm2-135m", "--devices", "2", "--context", "256")
    assert schedc("compile", *given, "--placement", "rules.yaml", "--no-check", "-o", "k").code == 0
    beside = families(schedc("inspect", "placement", *given, "--placement", "rules.yaml", "--json"))
    assert families(schedc("inspect", "placement", "k", "--json")) == beside
    assert refused(schedc("inspect", "placement", "k", "--rows", "4")) == (
        "k: has been compiled for rows 1; --rows cannot change that"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dnse: replicated\n", "rules.yaml:\n  dnse: unknown key; nearest: dense"),
        ("dense: rows\n", "rules.yaml:\n  dense: must be 'columns' or 'replicated', not 'rows'"),
        ("a: [\n", "rules.yaml: "),
        (
            "experts: {expert_parallel: 2, tensor_parallel: 2}\n",
            "smollm2-135m:\n  placement.experts: the model has no experts; leave it out",
        ),
    ],
)
def test_bad_rules_are_named(schedc: Command, text: str, message: str) -> None:
    Path("rules.yaml").write_text(text)
    said = schedc("compile", "smollm2-135m", "--devices", "4", "--placement", "rules.yaml", "--no-check")
    assert refused(said).startswith(message)


def test_experts_that_do_not_come_out_with_the_devices_are_refused(schedc: Command) -> None:
    Path("rules.yaml").write_text("experts: {expert_parallel: 2, tensor_parallel: 2}\n")
    said = schedc("inspect", "placement", "mixtral-8x22b", "--devices", "8", "--placement", "rules.yaml")
    assert refused(said) == (
        "mixtral-8x22b:\n  placement.experts: expert_parallel 2 times tensor_parallel 2 is 4, not the 8 devices that "
        "are used"
    )


def test_a_split_of_experts_that_is_asked_for_is_told_beside_the_bytes_of_the_whole(schedc: Command) -> None:
    """What one copy takes does not depend on the rules, which would not come out with one device."""
    asked = ("inspect", "placement", "deepseek-v2-lite", "--devices", "8", "--json")
    Path("rules.yaml").write_text("experts: {expert_parallel: 8, tensor_parallel: 1}\n")
    found, default = families(schedc(*asked, "--placement", "rules.yaml")), families(schedc(*asked))
    assert found["experts"]["held"][0]["what"] == "8 of 64 experts, 1408 of 1408 columns"
    assert found["experts"]["once"] == default["experts"]["once"]


def test_one_device_has_no_tiles_in_turn(schedc: Command) -> None:
    Path("rules.yaml").write_text("kv: sequence\n")
    for command in (("inspect", "placement"), ("compile", "--no-check", "-o", "k")):
        said = schedc(*command, "smollm2-135m", "--devices", "1", "--placement", "rules.yaml")
        assert refused(said) == (
            "smollm2-135m:\n  placement.kv: sequence divides a cache over the devices that read it, and there is one "
            "device; use heads"
        )
    assert not Path("k").exists()


def test_a_model_that_one_device_cannot_hold_takes_the_fewest_that_can(schedc: Command) -> None:
    said = schedc("inspect", "placement", "llama-3.1-70b", "--json").json()
    assert said["devices"] == 2
    assert schedc("inspect", "placement", *SMALL, "--json").json()["devices"] == 1


def test_too_few_devices_are_refused_with_the_numbers_and_what_would_fit(schedc: Command) -> None:
    message = refused(schedc("compile", "llama-3.1-70b", "--devices", "1", "--no-check"), 1)
    assert message.splitlines()[0] == (
        "llama-3.1-70b does not fit the HBM of tpu7x:2x2x1 on 1 of its devices: 142,456,426,496 bytes a device, "
        "101,737,037,824 are left for arrays (40,719,388,672 too many)"
    )
    assert message.splitlines()[-1] == "  would fit: --devices 2"


def test_a_cache_that_is_too_large_is_made_to_fit_by_context_or_rows(schedc: Command) -> None:
    given = ("compile", "llama-3.1-70b", "--devices", "8", "--rows", "16", "--context", "131072", "--no-check")
    message = refused(schedc(*given), 1)
    assert message.splitlines()[-2:] == ["  would fit: --context 124928", "         or: --rows 15"]
    smaller = schedc("inspect", "placement", *given[1:6], "--context", "124928", "--json").json()
    assert smaller["total"] <= smaller["limit"]


def test_a_cache_that_several_devices_read_is_made_to_fit_by_its_tiles(schedc: Command) -> None:
    given = ("glm-4.5", "--target", "tpu7x:2x2x4", "--devices", "32", "--rows", "16", "--context", "131072")
    message = refused(schedc("compile", *given, "--no-check"), 1)
    assert message.splitlines()[-3] == "  would fit: kv: sequence in the rules of --placement"
    Path("rules.yaml").write_text("kv: sequence\n")
    shared = schedc("inspect", "placement", *given, "--placement", "rules.yaml", "--json").json()
    assert shared["total"] <= shared["limit"]
    held = shared["families"]["cache"]["held"]
    assert [each["what"] for each in held] == ["1 of 8 kv heads, one tile in 4 of a sequence"]


def test_a_model_that_needs_a_larger_topology_gets_it_and_one_that_is_asked_for_is_kept(schedc: Command) -> None:
    looked = schedc("inspect", "placement", "kimi-k3", "--json").json()
    assert (looked["target"], looked["devices"]) == ("tpu7x:2x2x4", 32)
    assert schedc("inspect", "placement", "smollm2-135m", "--json").json()["target"] == "tpu7x:2x2x1"
    assert schedc("inspect", "placement", "qwen3-0.6b", "--devices", "16", "--json").json()["target"] == "tpu7x:2x2x4"
    assert refused(schedc("inspect", "placement", "kimi-k3", "--target", "tpu7x:2x2x1"), 1) == (
        "kimi-k3 does not fit the HBM of tpu7x:2x2x1 on all 8 of its devices: its parameters take 1,389,742,238,000 "
        "bytes in 4 bits each, 813,896,302,592 are left for arrays\n  would fit at best: a topology of 14 devices"
    )


def test_what_is_much_too_large_is_refused_before_it_is_lowered(schedc: Command) -> None:
    spec = load_spec("smollm2-135m").model_dump(mode="json", exclude_none=True)
    Path("huge.yaml").write_text(format_yaml(spec | {"hidden": 10**30}))
    assert "its parameters take" in refused(schedc("compile", "./huge.yaml", "--no-check"), 1)

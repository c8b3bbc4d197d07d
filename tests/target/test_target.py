"""Targets: chips are not devices, topologies are whole hosts, every figure has an origin."""

import re
from pathlib import Path

import pytest

from schedc.errors import TargetError
from schedc.target.load import chip_names, load_chip, load_chip_file
from schedc.target.target import list_targets, parse_target


def refusal(text: str, devices: int = 1) -> str:
    with pytest.raises(TargetError) as caught:
        parse_target(text, devices)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "devices", "description"),
    [
        ("tpu7x:2x2x1", 1, "tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 1 device used"),
        ("tpu7x", 8, "tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 8 devices used"),
        ("tpu7x:2x2x4", 32, "tpu7x:2x2x4: 16 chips, 32 devices, 4 hosts; 32 devices used"),
        ("v6e", 4, "v6e:2x2: 4 chips, 4 devices, 1 host; 4 devices used"),
        ("v5p:2x2x2", 1, "v5p:2x2x2: 8 chips, 8 devices, 2 hosts; 1 device used"),
        ("v5e:4x4", 1, "v5e:4x4: 16 chips, 16 devices, 4 hosts; 1 device used"),
    ],
)
def test_a_target_says_chips_and_devices(text, devices, description):
    assert parse_target(text, devices).describe() == description


def test_the_compiler_knows_the_topology_by_its_own_name():
    assert [target.topology_name for target in list_targets()] == ["tpu7x:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2"]


@pytest.mark.parametrize(
    ("text", "devices", "message"),
    [
        ("tpu7", 1, "unknown target 'tpu7'; nearest: tpu7x; a chip of your own is given as a file, ./tpu7.yaml"),
        ("gpu:2x2", 1,
         "unknown target 'gpu'; nearest: tpu7x; a chip of your own is given as a file, ./gpu.yaml"),
        ("tpu7x:2x2", 1, "tpu7x:2x2: topology 2x2 has 2 dimensions, tpu7x has 3, as in 2x2x1"),
        ("tpu7x:2x3x1", 1, "tpu7x:2x3x1: topology 2x3x1 is not made of whole hosts of 2x2x1 chips"),
        ("tpu7x:", 1, "tpu7x:: a topology is missing after the colon, like 2x2x1"),
        ("tpu7x:2x2x0", 1, "tpu7x:2x2x0: topology '2x2x0' is not like 2x2x1"),
        ("v5e:32x32", 1, "v5e:32x32: topology 32x32 is 1024 chips, the largest slice of v5e has 256"),
        ("tpu7x:2x2x1", 9, "tpu7x:2x2x1 has 8 devices (4 chips of 2); 9 cannot be used"),
        ("v6e", 0, "v6e:2x2 has 4 devices (4 chips of 1); 0 cannot be used"),
        ("./none.yaml", 1, "none.yaml: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_a_bad_target_is_refused_with_its_reason(text, devices, message):
    assert refusal(text, devices) == message


def test_a_users_own_chip_says_only_what_differs_from_its_base(tmp_path: Path):
    path = tmp_path / "small.yaml"
    path.write_text("base: tpu7x\ncapability:\n  vmem_usable_bytes: {value: 2097152, source: an experiment}\n")
    target = parse_target(f"{path}:2x2x2", devices=16)
    assert target.name == "small:2x2x2"
    assert target.topology_name == "tpu7x:2x2x2"
    assert target.capability.vmem_usable_bytes == 2097152
    assert target.capability.sources["vmem_usable_bytes"] == "an experiment"
    assert target.capability.vmem_bytes == load_chip("tpu7x").capability.vmem_bytes
    assert target.cost == load_chip("tpu7x").cost


def test_a_bad_chip_file_is_refused_with_all_its_faults(tmp_path: Path):
    path = tmp_path / "bad.yaml"
    path.write_text(
        "base: v6e\npod_chips: many\n"
        "capability:\n  semaphores: {value: 4}\n  vmem: {value: 1, source: me}\n"
        "cost:\n  clock_mhz: 1750\n  hbm_peak_gb_s: {value: null, source: me}\n"
    )
    assert sorted(refusal(str(path)).splitlines()) == sorted(
        [
            f"{path}:",
            "  pod_chips: must be a whole number, not 'many'",
            "  capability.semaphores: needs a source, or says what it is derived_from",
            "  capability.vmem: unknown key; nearest: vmem_bytes",
            "  cost.clock_mhz: must be {value, source or derived_from, note if need be}",
            "  cost.hbm_peak_gb_s: an unknown value needs a note",
        ]
    )


def test_a_file_based_on_an_unknown_chip_is_refused(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text("base: v7x\n")
    assert refusal(str(path)).startswith(f"{path}: base: unknown target 'v7x'; nearest: tpu7x")


@pytest.mark.parametrize("name", chip_names())
def test_every_figure_has_an_origin_or_says_why_it_is_unknown(name):
    chip = load_chip(name)
    for figures in (chip.capability, chip.cost):
        for field in figures.model_fields_set - {"sources", "derived_from", "notes"}:
            origins = (field in figures.sources) + figures.is_derived(field)
            assert origins == 1 or (getattr(figures, field) is None and field in figures.notes), field


def test_the_figures_of_tpu7x_are_those_of_one_device():
    target = parse_target("tpu7x:2x2x1")
    capability, cost = target.capability, target.cost
    assert (capability.vmem_bytes, capability.vmem_usable_bytes) == (64 << 20, 65_472 << 10)
    assert (capability.hbm_bytes, capability.hbm_usable_bytes) == (96 << 30, int(94.75 * 2**30))
    assert (cost.hbm_peak_gb_s, cost.dma_hbm_to_vmem_ns, cost.sibling_gb_s) == (3690.0, 692.0, 663.0)
    assert set(cost.derived_from) == {"collective_us", "collective_hop_us"}


def test_what_is_estimated_for_another_chip_is_marked():
    cost = load_chip("v6e").cost
    assert cost.derived_from["dma_hbm_to_vmem_ns"] == "tpu7x, no figure known for this chip"
    assert re.match("hbm_peak_gb_s, at the share", cost.derived_from["hbm_stream_gb_s"])
    assert not cost.is_derived("hbm_peak_gb_s")


def test_a_chip_of_ones_own_has_a_name_of_its_own(tmp_path: Path):
    path = tmp_path / "tpu7x.yaml"
    path.write_text("base: tpu7x\n")
    assert load_chip_file(path) == load_chip("tpu7x")
    path.write_text("base: tpu7x\ncapability:\n  vmem_usable_bytes: {value: 2097152, source: an experiment}\n")
    with pytest.raises(TargetError, match="name: tpu7x is a chip that comes with schedc, with other figures"):
        load_chip_file(path)

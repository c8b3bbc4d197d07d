"""`schedc pack` for several devices: a file each, and a host packs those of its own."""

from pathlib import Path

import pytest

from schedc.compiler.output import read_output
from schedc.spec.model import ModelSpec
from schedc.weights.layout import on_device
from schedc.weights.packed_file import load_packed

from .conftest import Command, refused
from .test_run import spec as spec
from .test_run import write_model


@pytest.fixture
def folder(schedc: Command, spec: ModelSpec) -> Path:
    write_model(spec, Path("m"))
    assert schedc("compile", "m/words.yaml", "--devices", "4", "--no-check", "-o", "k").code == 0
    return Path("k")


def test_every_device_has_the_file_of_its_layouts(schedc: Command, folder: Path) -> None:
    result = schedc("pack", str(folder), "--weights-file", "m", "-o", "w.packed", "--json").json()
    output = read_output(folder)
    assert [file["file"] for file in result["files"]] == [f"w.{device}-of-4.packed" for device in range(4)]
    assert [file["layout"] for file in result["files"]] == output.manifest["weights"]["device_hashes"]
    for device, file in enumerate(result["files"]):
        mine = [on_device(layout, device) for layout in output.layouts]
        assert load_packed(Path(file["file"]), mine).keys() == {layout.name for layout in mine}


def test_a_host_packs_its_own_devices_alone(schedc: Command, folder: Path) -> None:
    assert schedc("pack", str(folder), "--weights-file", "m", "-o", "w.packed", "--device", "1-2").code == 0
    assert sorted(path.name for path in Path().glob("w.*")) == ["w.1-of-4.packed", "w.2-of-4.packed"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4", "--device 4: the kernel has the devices 0 to 3"),
        ("2-9", "--device 2-9: the kernel has the devices 0 to 3"),
        ("x", "--device x: must be all, or like 3, 8-15 or 0,2,4"),
        ("3-2", "--device 3-2: 3-2 ends before it begins; write 2-3"),
    ],
)
def test_a_device_that_there_is_not_is_refused(schedc: Command, folder: Path, text: str, message: str) -> None:
    assert refused(schedc("pack", str(folder), "--weights-file", "m", "-o", "w", "--device", text)) == message

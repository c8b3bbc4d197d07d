"""The packed file: resumed after an interruption, never half under its name, damage reported in numbers."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.forms import piece
from schedc.weights.layout import Columns, Layout, PanelMatrix, RowTable, VectorItem, Vectors
from schedc.weights.pack import pack, pack_arrays
from schedc.weights.packed_file import load_packed
from schedc.weights.random_weights import RandomWeights


class Interrupted(RandomWeights):
    """Ctrl-C at the n-th load of a weight."""

    def __init__(self, spec: ModelSpec, seed: int, loads: int) -> None:
        super().__init__(spec, seed)
        self.loads = loads

    def load(self, name: str, rows: tuple[int, int] | None = None) -> np.ndarray:
        self.loads -= 1
        if self.loads < 0:
            raise KeyboardInterrupt
        return super().load(name, rows)


@pytest.fixture
def layouts() -> list[Layout]:
    return [
        RowTable("embed", "bf16", 300, 40),
        PanelMatrix("up", "bf16", (0, 1), 40, 1, 2, (Columns("mlp.up", 0, 200),)),
        Vectors("norms", (0, 1), (VectorItem("pre_mixer_norm.weight", 40),)),
    ]


def packed(spec: ModelSpec, layouts: list[Layout], path: Path) -> Path:
    pack(layouts, RandomWeights(spec, 0), path)
    return path


def listed(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_file_holds_the_arrays(spec: ModelSpec, layouts: list[Layout], tmp_path: Path) -> None:
    arrays = load_packed(packed(spec, layouts, tmp_path / "new" / "w"), layouts)
    expected = pack_arrays(layouts, RandomWeights(spec, 0))
    assert list(arrays) == ["embed", "up", "norms"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name])
    assert listed(tmp_path / "new") == ["w"]


def test_packing_twice_gives_the_same_bytes(spec: ModelSpec, layouts: list[Layout], tmp_path: Path) -> None:
    first = packed(spec, layouts, tmp_path / "a").read_bytes()
    assert packed(spec, layouts, tmp_path / "b").read_bytes() == first


def test_an_interruption_leaves_no_file_and_the_next_run_goes_on(
    spec: ModelSpec, layouts: list[Layout], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece, "PIECE_ROWS", 100)  # the table is three pieces
    path = tmp_path / "w"
    with pytest.raises(KeyboardInterrupt):
        pack(layouts, Interrupted(spec, 0, loads=4), path)
    assert listed(tmp_path) == ["w.journal", "w.part"]

    resumed = Interrupted(spec, 0, loads=100)
    steps: list[tuple[int, int]] = []
    pack(layouts, resumed, path, progress=lambda done, total: steps.append((done, total)))
    assert 100 - resumed.loads == 7 - 4  # four pieces of seven were there
    assert steps[0] == (100 * 512, (300 + 2 * 48 + 2 * 8) * 512)
    assert steps[-1][0] == steps[-1][1]
    assert listed(tmp_path) == ["w"]
    assert path.read_bytes() == packed(spec, layouts, tmp_path / "again").read_bytes()


def test_pieces_of_other_weights_or_damaged_ones_are_packed_again(
    spec: ModelSpec, layouts: list[Layout], tmp_path: Path
) -> None:
    good = packed(spec, layouts, tmp_path / "good").read_bytes()
    path = tmp_path / "w"
    with pytest.raises(KeyboardInterrupt):
        pack(layouts, Interrupted(spec, 1, loads=2), path)
    assert packed(spec, layouts, path).read_bytes() == good

    with pytest.raises(KeyboardInterrupt):
        pack(layouts[::-1], Interrupted(spec, 0, loads=4), path)
    assert packed(spec, layouts, path).read_bytes() == good

    with pytest.raises(KeyboardInterrupt):
        pack(layouts, Interrupted(spec, 0, loads=2), path)
    with (tmp_path / "w.part").open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    assert packed(spec, layouts, path).read_bytes() == good


@pytest.mark.parametrize("loads", range(5))
def test_any_interruption_ends_in_the_same_file(
    spec: ModelSpec, layouts: list[Layout], tmp_path: Path, loads: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        pack(layouts, Interrupted(spec, 0, loads), tmp_path / "w")
    good = packed(spec, layouts, tmp_path / "good").read_bytes()
    assert packed(spec, layouts, tmp_path / "w").read_bytes() == good


def test_a_truncated_file_is_refused_with_its_bytes(spec: ModelSpec, layouts: list[Layout], tmp_path: Path) -> None:
    path = packed(spec, layouts, tmp_path / "w")
    size = path.stat().st_size
    os.truncate(path, size - 1000)
    message = f"{path}: truncated: expected {size:,} bytes, found {size - 1000:,}; pack again"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        load_packed(path)
    os.truncate(path, 100)
    with pytest.raises(UserError, match=r"truncated in the header: expected \d+ bytes or more, found 100; pack again$"):
        load_packed(path)


def test_a_damaged_array_is_refused_with_its_name_and_place(
    spec: ModelSpec, layouts: list[Layout], tmp_path: Path
) -> None:
    path = packed(spec, layouts, tmp_path / "w")
    at = path.read_bytes().index(load_packed(path)["up"][:8].tobytes())
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"damage")
    message = (
        rf"{re.escape(str(path))}: up: bytes {at:,} to {at + 96 * 512:,} are damaged: crc32 expected \w{{8}}, found"
    )
    with pytest.raises(UserError, match=message):
        load_packed(path)
    assert load_packed(path, verify=False)["up"].shape == (96, 128)


def test_other_files_and_layouts_are_refused(spec: ModelSpec, layouts: list[Layout], tmp_path: Path) -> None:
    path = packed(spec, layouts, tmp_path / "w")
    with pytest.raises(
        UserError, match=r"packed for another layout: sha256 of the layouts is \w{12}…, expected \w{12}…"
    ):
        load_packed(path, layouts[:2])
    (tmp_path / "other").write_bytes(b"something else")
    with pytest.raises(UserError, match=r"other: not packed weights: begins with b'somethin', expected b'SCHEDCW1'$"):
        load_packed(tmp_path / "other")
    with pytest.raises(UserError, match=r"absent: cannot be read: No such file or directory$"):
        load_packed(tmp_path / "absent")


def test_a_place_that_cannot_be_written_is_a_user_error(spec: ModelSpec, layouts: list[Layout], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/w: cannot be written: (File exists|Not a directory)$"):
        packed(spec, layouts, tmp_path / "file" / "w")

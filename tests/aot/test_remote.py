"""The example programs on many devices: compiled by the real compiler, interpreted on virtual devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.failure import CompileFailed
from schedc.backends.pallas.emit.kernel import emit
from schedc.ir.text_parse import parse_program
from tests.aot.devices import TOPOLOGY, Answer, compiled, example, interpreted, replaced
from tests.eight_devices import EIGHT_DEVICES

pytestmark = pytest.mark.kernel

Arrays = dict[str, np.ndarray]
EIGHT = pytest.param(8, marks=EIGHT_DEVICES)


def exchange(devices: int) -> str:
    """Pairs add half of what the other has, six times."""
    return replaced(example("exchange"), ("devices 2\n", f"devices {devices}\n"))


def exchange_means(x: np.ndarray) -> np.ndarray:
    total = x
    for _ in range(6):
        total = total + np.float32(0.5) * total[np.arange(len(x)) ^ 1]
    return total


def ring(devices: int) -> str:
    """Every device gets the rows of all, passed from each to the next."""
    return replaced(
        example("ring"),
        ("devices 8\n", f"devices {devices}\n"),
        ("rows=64 output", f"rows={8 * devices} output"),
        ("rank + 8", f"rank + {devices}"),
        ("rank + 7", f"rank + {devices - 1}"),
        ("% 8", f"% {devices}"),
        ("step < 8", f"step < {devices}"),
        ("step < 7", f"step < {devices - 1}"),
        ("step < 6", f"step < {devices - 2}"),
    )


def ring_means(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.reshape(1, -1, 128), (len(x), 8 * len(x), 128))


def turns(devices: int) -> str:
    """Each device in turn sends its rows to all others, which add half of them."""
    return replaced(
        example("turns"),
        ("devices 8\n", f"devices {devices}\n"),
        ("% 8", f"% {devices}"),
        ("turn < 8", f"turn < {devices}"),
        ("distance < 7", f"distance < {devices - 1}"),
        ("peer < 7", f"peer < {devices - 1}"),
    )


def turns_means(x: np.ndarray) -> np.ndarray:
    return x + np.float32(0.5) * (x.sum(axis=0, keepdims=True) - x)


PROGRAMS: dict[str, tuple[Callable[[int], str], Callable[[np.ndarray], np.ndarray]]] = {
    "exchange": (exchange, exchange_means),
    "ring": (ring, ring_means),
    "turns": (turns, turns_means),
}


def rows_of(devices: int, rows: int = 8) -> np.ndarray:
    """Small integers, so that every sum is exact: f32[devices, rows, 128]."""
    return np.random.default_rng(devices).integers(-64, 64, (devices, rows, 128)).astype(np.float32)


def as_words(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.float32).view(np.int32)


def run(text: str, devices: int, seconds: float = 120) -> dict[str, Answer]:
    name = next(a.name for a in parse_program(text).arrays if a.role == "input")
    return interpreted(text, {name: as_words(rows_of(devices))}, seconds)


@pytest.mark.parametrize("devices", [2, 4, EIGHT])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_device_gets_the_exact_values_and_nothing_races(name: str, devices: int) -> None:
    text, means = PROGRAMS[name]
    expected = as_words(means(rows_of(devices)))
    for mode, answer in run(text(devices), devices).items():
        (got,) = answer.outputs.values()
        assert np.array_equal(got, expected), mode
        assert not answer.raced, mode
        assert "non-zero count" not in answer.log


@pytest.mark.parametrize(("name", "devices"), [("exchange", 2), ("exchange", 8), ("ring", 8), ("turns", 8)])
def test_the_compiler_keeps_the_programs_order_of_transfers(name: str, devices: int, tmp_path: Path) -> None:
    report, differences = compiled(parse_program(PROGRAMS[name][0](devices)), tmp_path)
    assert differences == []
    assert {t.direction for t in report.transfers if t.kind == "start"} == {"hbm_to_vmem", "general", "vmem_to_hbm"}


def test_without_parity_buffers_the_race_is_found_in_both_modes() -> None:
    text = replaced(exchange(2), ("inbox<l % 2>", "inbox<0>"))
    assert [answer.raced for answer in run(text, 2).values()] == [True, True]


STATE = """\
program state {
  devices 2
  attribute vmem_limit_bytes = 67043328
  pool work rows=16
  buffer mine in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots=1 align=8 at 8
  hbm x rows=8 input
  hbm kv rows=%d state
  hbm y rows=8 output
  semaphore moved[1] dma
  semaphore sent[1] dma
  semaphore arrived[1] dma
  barrier
  start kv[8 +: 8] -> mine[0 +: 8] signals moved
  wait moved rows=8
  remote.start mine[0 +: 8] -> inbox[0 +: 8] on rank ^ 1 sent sent signals arrived
  wait sent rows=8
  start x[0 +: 8] -> mine[0 +: 8] signals moved
  wait moved rows=8
  start mine[0 +: 8] -> kv[8 +: 8] signals moved
  wait arrived rows=8
  wait moved rows=8
  start inbox[0 +: 8] -> y[0 +: 8] signals moved
  wait moved rows=8
}
"""


def test_a_state_is_updated_in_place_beside_an_exchange() -> None:
    x, kv = rows_of(2).view(np.int32), np.arange(2 * 24 * 128, dtype=np.int32).reshape(2, 24, 128)
    expected = kv.copy()
    expected[:, 8:16] = x
    for mode, answer in interpreted(STATE % 24, {"x": x, "kv": kv}).items():
        assert np.array_equal(answer.outputs["kv"], expected), mode
        assert np.array_equal(answer.outputs["y"], kv[::-1, 8:16]), mode
        assert not answer.raced, mode


@pytest.mark.parametrize("rows", [24, 4096])
def test_no_copy_of_a_state_is_made_beside_the_kernel(rows: int, tmp_path: Path) -> None:
    report, differences = compiled(parse_program(STATE % rows), tmp_path)
    assert differences == []
    assert report.alias_bytes == rows * 512
    assert [copy.result for copy in report.copies if f"s32[{rows}," in copy.result] == []
    assert report.temp_bytes < 2**16


def test_a_returned_state_would_be_copied(tmp_path: Path) -> None:
    """Why it is updated as an argument: XLA copies what a kernel that talks to other devices returns."""
    path = tmp_path / "kernel.py"
    path.write_text(replaced(emit(parse_program(STATE % 4096)).source, (" if interpret else", " if True else")))
    report = compile_kernel(path, TOPOLOGY, 2)
    assert len([copy for copy in report.copies if "s32[4096," in copy.result]) == 2
    assert report.temp_bytes >= 4096 * 512


def test_a_mesh_of_another_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(emit(parse_program(exchange(4))).source)
    message = "exchange wants a mesh of 4 devices on the one axis 'device', this one is {'device': 2}"
    with pytest.raises(CompileFailed, match=re.escape(message)):
        compile_kernel(path, TOPOLOGY, 2, dump=False)


THROUGH_HBM = """\
program through {
  devices 2
  attribute vmem_limit_bytes = 67043328
  pool work rows=8
  buffer inbox in work rows=8 slots=1 align=8 at 0
  hbm x rows=8 input
  hbm y rows=16 output
  semaphore sent[1] dma
  semaphore arrived[2] dma
  barrier
  remote.start x[0 +: 8] -> inbox[0 +: 8] on rank ^ 1 sent sent signals arrived
  wait sent rows=8
  wait arrived rows=8
  remote.start inbox[0 +: 8] -> y[8 +: 8] on rank ^ 1 sent sent signals arrived[1]
  remote.start x[0 +: 8] -> y[0 +: 8] on rank ^ 1 sent sent signals arrived[1]
  wait sent rows=16
  wait arrived[1] rows=16
}
"""


def test_rows_go_from_hbm_to_a_peer_and_into_its_output(tmp_path: Path) -> None:
    _, differences = compiled(parse_program(THROUGH_HBM), tmp_path)
    assert differences == []
    x = rows_of(2).view(np.int32)
    for mode, answer in run(THROUGH_HBM, 2).items():
        assert np.array_equal(answer.outputs["y"], np.concatenate([x[::-1], x], axis=1)), mode
        assert not answer.raced, mode

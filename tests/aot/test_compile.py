"""What the TPU compiler makes of a kernel, as the report tells it."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.report import CompileReport
from schedc.backends.pallas.aot.transfers import check_order

from .conftest import KERNELS, TOPOLOGY, Variant, line_with

pytestmark = pytest.mark.kernel

STARTS = [
    ("start(weights, 0, pool", 64, "hbm_to_vmem"),
    ("start(embedding", 1, "hbm_to_vmem"),
    ("start(weights, (2 * pair + 1)", 64, "hbm_to_vmem"),
    ("start(weights, (2 * pair + 2)", 64, "hbm_to_vmem"),
    ("start(cache_out, 0, tiles", 16, "hbm_to_vmem"),
    ("start(cache_out, (tile + 1)", 16, "hbm_to_vmem"),
    ("start(token, 0, cache_out", 1, "vmem_to_hbm"),
]


def starts_of(kernel: Path) -> list[tuple[int, float | None, str]]:
    return [(line_with(kernel, piece), rows, direction) for piece, rows, direction in STARTS]


def test_scratch_in_vmem_is_the_declared_bytes_in_the_declared_order(report: CompileReport) -> None:
    scratch = [
        (a.shape.split("{")[0], a.bytes) for a in report.allocations if a.kind == "scratch" and a.space == "vmem"
    ]
    assert scratch == [
        ("s32[128,128]", 128 * 512),
        ("s32[32,128]", 32 * 512),
        ("f32[8,128]", 8 * 512),
        ("s32[8,128]", 8 * 512),
    ]


def test_all_other_vmem_is_internal_scratch_and_the_window_of_the_output(report: CompileReport) -> None:
    assert report.vmem_bytes("internal") == 73_728
    assert report.vmem_bytes("window") == 8 * 512
    assert report.vmem_bytes() == report.vmem_bytes("scratch", "internal", "window")


def test_the_state_is_updated_in_place(report: CompileReport) -> None:
    cache = 16 * 8 * 512
    assert (report.temp_bytes, report.alias_bytes, report.copies_of(at_least=512)) == (0, cache, ())


def test_the_arrays_stay_in_hbm(report: CompileReport) -> None:
    assert [o.space for o in report.operands if o.shape.startswith(("s32[64", "s32[384", "s32[128"))] == ["hbm"] * 4


def test_a_state_that_is_not_donated_is_copied(variant: Variant) -> None:
    kernel = variant(
        ("TILES = 6, 64, 16, 8", "TILES = 6, 64, 16, 256"),
        ("donate_argnums=tuple(list(ARGUMENTS).index(name) for name in STATE)", "donate_argnums=()"),
    )
    (copy,) = compile_kernel(kernel, TOPOLOGY, dump=False).copies_of()
    assert copy.bytes == 256 * 16 * 512


def test_transfers_are_in_the_bundles_in_program_order_with_the_line_of_the_call(
    layers: Path, report: CompileReport
) -> None:
    assert check_order(report, starts_of(layers)) == []


def test_a_small_operand_without_the_constraint_is_moved_to_vmem_and_has_no_transfers(variant: Variant) -> None:
    kernel = variant(("pltpu.with_memory_space_constraint(array, pltpu.HBM)", "array"))
    report = compile_kernel(kernel, TOPOLOGY)
    assert {o.shape: o.space for o in report.operands}["s32[384,128]"] == "vmem"
    differences = check_order(report, starts_of(kernel))
    assert differences and all("the bundles have nothing" in difference for difference in differences)


def test_equal_transfers_on_different_lines_keep_their_own_lines(variant: Variant) -> None:
    again = "    wait(embedding, token, 1, single.at[0])\n"
    more = "    start(embedding, position[0], token, 0, 1, single.at[0])  # again\n"
    kernel = variant((again, again + more + again))
    second = line_with(kernel, "# again")
    lines = [t.line for t in compile_kernel(kernel, TOPOLOGY).transfers if t.rows == 1 and t.direction != "vmem_to_hbm"]
    assert lines == [second - 2, second - 1, second, second + 1, line_with(kernel, "wait(token, cache_out")]


def test_an_unrolled_python_loop_repeats_its_transfer_and_joins_its_waits(variant: Variant) -> None:
    loop = (
        "    for row in range(3):\n"
        "        start(weights, row * 8, tiles, row * 8, 8, filled.at[0])  # unrolled\n"
        "    for _ in range(3):\n"
        "        wait(weights, tiles, 8, filled.at[0])  # joined\n"
    )
    begin = "    start(weights, 0, pool, 0, WEIGHT, arrived.at[0])\n"
    kernel = variant((begin, loop + begin))
    report = compile_kernel(kernel, TOPOLOGY)
    starts = [t.rows for t in report.transfers if t.line == line_with(kernel, "# unrolled")]
    waits = [t.rows for t in report.transfers if t.line == line_with(kernel, "# joined")]
    assert (starts, waits) == ([8, 8, 8], [24])


def test_transfers_to_other_devices_are_general_and_in_order() -> None:
    kernel = KERNELS / "exchange.py"
    report = compile_kernel(kernel, TOPOLOGY, devices_used=8)
    lines = [line_with(kernel, f"start_remote(x, box, sent, arrived, {distance})") for distance in (1, 2)]
    assert check_order(report, [(line, 16, "general") for line in lines]) == []
    waits = [t.line for t in report.transfers if t.kind == "wait"]
    names = ("wait_received", "wait_sent")
    assert waits[-4:] == [line_with(kernel, f"{n}(x, box, sent, arrived, {d})") for n in names for d in (1, 2)]


def test_a_loop_is_one_body_with_its_trip_count(layers: Path, report: CompileReport) -> None:
    static, dynamic = report.loops
    assert (static.line, static.start, static.step, static.limit) == (line_with(layers, "@pl.loop(0, LAYERS"), 0, 1, 3)
    assert (dynamic.line, dynamic.limit) == (line_with(layers, "@pl.loop(0, count"), None)
    backward = [branch for branch in report.branches if branch.target <= branch.bundle]
    assert {branch.line for branch in backward} == {static.line, dynamic.line}


def test_depth_costs_no_code(report: CompileReport, variant: Variant) -> None:
    deep = compile_kernel(variant(("LAYERS, WEIGHT, TILE, TILES = 6", "LAYERS, WEIGHT, TILE, TILES = 60")), TOPOLOGY)
    assert deep.cycles is not None and report.cycles is not None
    assert deep.code_bytes == pytest.approx(report.code_bytes, rel=0.01)
    assert deep.cycles.total == pytest.approx(report.cycles.total, rel=0.01)


def test_cycles_count_the_stalls_and_belong_to_lines_of_the_schedule(layers: Path, report: CompileReport) -> None:
    assert report.cycles is not None
    assert 0 < report.cycles.empty < report.cycles.total
    assert sum(report.line_cycles.values()) == report.cycles.total
    body = range(line_with(layers, "def body("), line_with(layers, "def decode_step("))
    assert all(line in body for line in report.line_cycles if line)
    assert report.line_cycles[line_with(layers, "multiply(y[...], pool, 0)")] > 100


def test_bundles_of_the_transfers_ascend(report: CompileReport) -> None:
    assert all(a.bundle <= b.bundle for a, b in pairwise(report.transfers))


def test_exact_source_lines_change_no_schedule(layers: Path, report: CompileReport) -> None:
    plain = compile_kernel(layers, TOPOLOGY, annotate=False)
    assert (plain.cycles, plain.code_bytes) == (report.cycles, report.code_bytes)
    assert [(t.bundle, t.rows) for t in plain.transfers] == [(t.bundle, t.rows) for t in report.transfers]


def test_registers_that_do_not_fit_are_reported_as_spills() -> None:
    report = compile_kernel(KERNELS / "spills.py", TOPOLOGY)
    assert 64 * 4096 < report.vmem_bytes("spill") < 128 * 4096


def test_a_report_without_dumps_has_the_sizes_and_the_stages_are_told(layers: Path, report: CompileReport) -> None:
    stages: list[str] = []
    short = compile_kernel(layers, TOPOLOGY, dump=False, progress=stages.append)
    assert stages == ["load", "lower", "compile", "read"]
    assert (short.argument_bytes, short.code_bytes) == (report.argument_bytes, report.code_bytes)
    assert (short.cycles, short.transfers, short.allocations) == (None, (), ())


def test_a_report_survives_json(report: CompileReport) -> None:
    assert CompileReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report

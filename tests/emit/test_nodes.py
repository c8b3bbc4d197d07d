"""Text of an operation in, lines of the kernel out: devices, barriers, switches, tables."""

from __future__ import annotations

import re

import pytest

from schedc.backends.pallas.emit.devices import extra_semaphores
from schedc.backends.pallas.emit.kernel import emit
from schedc.backends.pallas.errors import EmitError
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program

DECLARED = """\
program p {
  devices %d
  pool work rows=24
  buffer tile in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots=2 align=8 at 8
  hbm x rows=8 input
  hbm kv rows=8 state
  hbm y rows=8 output
  smem position[2] in 0..9 input
  smem chosen[2] in 0..9 local
  table kind = 0, 2, 1
  semaphore sent[1] dma
  semaphore arrived[2] dma
  semaphore ready[3] regular
"""


def program(body: str, devices: int = 4) -> Program:
    declared = DECLARED % devices if devices > 1 else DECLARED.replace("  devices %d\n", "")
    return parse_program(f"{declared}{body}\n}}\n")


def kernel(body: str, devices: int = 4) -> str:
    """The emitted function `kernel`."""
    source = emit(program(body, devices)).source
    compile(source, "kernel.py", "exec")
    return source[source.index("def kernel(") : source.index("def step_on_device(")]


def lines(body: str, devices: int = 4) -> list[str]:
    """The lines of the kernel after those of its buffers, without indentation."""
    text = kernel(body, devices).split("\n\n", 1)[1]
    return [line.strip() for line in text.splitlines() if line.strip()]


BARRIER = "barrier(rank, 4)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "remote.start tile[0 +: 8] -> inbox<1>[0 +: 8] on rank ^ 1 sent sent signals arrived[rank % 2]",
            ["remote_copy(tile, inbox(1), rank ^ 1, sent.at[0], arrived.at[lax.rem(rank, 2)]).start()"],
        ),
        (
            "remote.start tile[0 +: 8] -> inbox[0 +: 8] on (rank + 3) % 4 sent sent signals arrived",
            ["remote_copy(tile, inbox(0), lax.rem(rank + 3, 4), sent.at[0], arrived.at[0]).start()"],
        ),
        ("signal ready[2] amount=2 on (rank ^ 1) % 4", ["signal_peer(ready.at[2], 2, lax.rem(rank ^ 1, 4))"]),
        ("signal ready amount=1", ["signal(ready.at[0], 1)"]),
        ("barrier", [BARRIER]),
        ("loop l < 2 {\n barrier\n}", ["@pl.loop(0, 2)", "def _(l):", BARRIER]),
        ("when rank == 0 {\n}", ["@pl.when(rank == 0)", "def _():", "pass"]),
    ],
)
def test_an_operation_on_another_device_is_one_line(body: str, expected: list[str]) -> None:
    assert lines(f"barrier\n{body}") == [BARRIER, *expected]


def test_what_a_computation_sets_is_an_argument_of_the_operation() -> None:
    call = "compute vector_to_scalars(x: read tile[0 +: 8]) sets values=chosen {count=2}"
    assert lines(call) == ["vector_to_scalars(x=tile, values=chosen, count=2)"]
    assert "work, chosen," in kernel(call)


def test_the_rank_is_asked_for_only_where_it_is_used() -> None:
    assert 'rank = lax.axis_index("device")' in kernel("barrier")
    assert "rank" not in kernel("signal ready amount=1")
    assert 'rank = lax.axis_index("device")' in kernel("when rank == 1 {\n}")


def test_all_barriers_take_one_semaphore_that_is_not_the_programs() -> None:
    counts = [extra_semaphores(program(body)) for body in ("", "barrier", "barrier\nloop l < 2 {\n barrier\n}")]
    assert counts == [0, 1, 1]
    source = emit(program("barrier")).source
    assert re.findall(r"SemaphoreType\.REGULAR\(\((\d+),\)\),  # (\w+)", source) == [("3", "ready")]
    assert "collective_id=0" in source and "collective_id" not in emit(program("")).source


SWITCH = """\
switch kind[%s] {
  case 0 {
    signal ready amount=1
  }
  case 2 {
  }
}"""


def test_a_switch_reads_its_selector_once_and_guards_every_case() -> None:
    assert lines(f"loop l < 3 {{\n{SWITCH % 'l'}\n}}", devices=1) == [
        "@pl.loop(0, 3)",
        "def _(l):",
        "selected = kind_in_smem[l]",
        "@pl.when(selected == 0)",
        "def _():",
        "signal(ready.at[0], 1)",
        "@pl.when(selected == 2)",
        "def _():",
        "pass",
    ]


def test_a_switch_known_when_tracing_is_pythons_own() -> None:
    assert lines(f"loop l < 3 unroll {{\n{SWITCH % 'l'}\n}}", devices=1) == [
        "for l in range(3):",
        "selected = kind[l]",
        "if selected == 0:",
        "signal(ready.at[0], 1)",
        "elif selected == 2:",
        "pass",
    ]


def test_a_switch_may_stand_in_a_case() -> None:
    inner = "switch kind[l] {\n case 0 {\n }\n}"
    text = kernel(
        f"loop l < 3 {{\nswitch position[0] {{\n case 1 {{\n {inner}\n }}\n case 2 {{\n }}\n}}\n}}", devices=1
    )
    assert [line[8:] for line in text.splitlines() if "selected" in line] == [
        "selected = position[0]",
        "@pl.when(selected == 1)",
        "    selected = kind_in_smem[l]",
        "    @pl.when(selected == 0)",
        "@pl.when(selected == 2)",
    ]


def test_a_table_is_in_smem_only_for_indices_that_are_traced() -> None:
    static = emit(program("signal ready[kind[2]] amount=1", 1)).source
    assert "TABLES = {\n    'kind': (0, 2, 1),\n}" in static
    assert "    kind = TABLES['kind']\n" in static and "kind_in_smem" not in static
    traced = emit(program("signal ready[kind[position[0]]] amount=1", 1)).source
    assert "    position, kind_in_smem,\n" in traced and "kind = TABLES" not in traced
    assert "pl.BlockSpec(memory_space=pltpu.SMEM),  # kind\n" in traced
    assert "return step(*scalars, *tables, *weights, *states)" in traced
    both = kernel("signal ready[kind[2]] amount=1\nsignal ready[kind[position[0]] // 2] amount=1", 1)
    assert "signal(ready.at[kind[2]], 1)" in both
    assert "signal(ready.at[lax.div(kind_in_smem[position[0]], 2)], 1)" in both


def test_a_table_is_no_argument_and_moves_the_alias_of_the_state() -> None:
    source = emit(program("signal ready[kind[position[0]]] amount=1", 1)).source
    arguments = source[source.index("ARGUMENTS") : source.index("STATE")]
    assert "kind" not in arguments
    assert "input_output_aliases={3: 0}" in source and "donate_argnums=(2,)" in source


def test_arrays_are_divided_over_the_mesh_and_scalars_are_not() -> None:
    source = emit(program("signal ready amount=1")).source
    assert "DEVICES = 4\n" in source
    assert "    'position': ('int32', (2,)),\n    'x': ('int32', (32, 128)),\n" in source
    assert "inputs = (whole,) * 1 + (rows,) * 2\n" in source
    assert 'outputs = (PartitionSpec("device"),) * 2\n' in source


def test_a_state_of_a_kernel_that_talks_is_updated_as_an_argument() -> None:
    alone, talking = (emit(program(body)).source for body in ("signal ready amount=1", "barrier"))
    assert "    x, kv_before,\n    kv, y,\n" in alone and "input_output_aliases={2: 0}," in alone
    assert "    x, kv,\n    y,\n" in talking and "input_output_aliases={2: 0} if interpret else {}," in talking
    assert "has_side_effects=True" in talking and "has_side_effects" not in alone
    assert "kernel(*refs[:2], *refs[3:])" in talking
    assert "donate_argnums=(2,)" in alone and "donate_argnums=(2,)" in talking


REMOTE = "remote.start tile[0 +: 8] -> inbox[0 +: 8] on rank ^ 1 sent sent signals arrived"


@pytest.mark.parametrize(
    ("body", "devices", "message"),
    [
        (REMOTE, 2, f"`{REMOTE}`: the peers' kernels may not have begun before the first barrier; put it first"),
        (f"{REMOTE}\nbarrier", 2, "may not have begun before the first barrier"),
        (
            "signal ready amount=1 on rank ^ 1\nbarrier",
            2,
            "`signal ready amount=1 on rank ^ 1`: the peers' kernels may",
        ),
        ("loop l < 2 {\n barrier\n}", 2, "the first barrier: is in a loop, a condition or a case"),
        ("phase a {\n when rank == 0 {\n barrier\n }\n}\nbarrier", 2, "the first barrier: is in a loop, a condition"),
        ("barrier", 1, "`barrier`: needs other devices, the program declares one; declare `devices 2`"),
        (
            "barrier\nremote.start tile[0 +: 8] -> kv[0 +: 8] on rank ^ 1 sent sent signals arrived",
            2,
            "kv may be at another address on the peer; send to a buffer and let the peer store it",
        ),
        ("wait sent rows=32", 2, "wait sent rows=32: wants a pool or an array of 32 rows, work has 24 and x has 8"),
        ("loop tile < 2 {\n}", 2, "counter tile: already the name of an operation or of storage"),
        ('loop "a b" < 2 {\n}', 2, "counter a b: not a Python name"),
        ("compute zero(x: write tile[0 +: 8])", 2, "compute zero: has no argument x; it has out"),
        (
            "compute zero(out: write tile[0 +: 8]) sets out=chosen, ids=chosen",
            2,
            "compute zero: the argument out is given twice\n  compute zero: has no argument ids; it has out",
        ),
        ("compute move(x: read tile[0 +: 8])", 2, "compute move: the argument out is missing"),
        ("compute zero(out: write tile[0 +: 8], out: write tile[0 +: 8])", 2, "zero: the argument out is given twice"),
    ],
)
def test_what_cannot_be_emitted_is_refused(body: str, devices: int, message: str) -> None:
    with pytest.raises(EmitError, match=re.escape(message)):
        emit(program(body, devices))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tile", "selected", "selected: already the name of an operation or of other storage"),
        ("tile", "barrier", "barrier: already the name"),
        ("tile", "kind_in_smem", "kind_in_smem: already the name"),
        ("tile", "kv_before", "kv_before: already the name"),
        ("buffer tile", 'buffer "rank"', "rank: already the name"),
    ],
)
def test_names_that_the_kernel_needs_are_refused(old: str, new: str, message: str) -> None:
    body = "barrier\nswitch position[0] {\n}"
    text = f"{DECLARED % 2}{body}\n}}\n"
    with pytest.raises(EmitError, match=re.escape(message)):
        emit(parse_program(text.replace(f"{old} in", f"{new} in")))


def test_names_and_facts_cannot_break_out_of_comments_and_strings() -> None:
    facts = r'attribute note = "\"\"\" \\ import os"'
    text = program('phase "a\\nimport os" {\n}', 1)
    assert "    # a\\nimport os\n" in emit(text).source
    source = emit(parse_program(DECLARED.replace("  devices %d\n", f"  {facts}\n") + "}\n")).source
    compile(source, "kernel.py", "exec")
    assert r"\"\"\" \\ import os" in source


def test_a_condition_of_nothing_always_holds() -> None:
    assert lines("when true {\n}", devices=1) == ["@pl.when(True)", "def _():", "pass"]


FED = ("token", "position", "active")


@pytest.mark.parametrize(
    ("inputs", "output", "several"),
    [
        (FED, "ids", True),
        ((*FED, "page"), "ids", True),
        (FED, "y", False),
        (("token", "position"), "ids", False),
        (("position", "token", "active"), "ids", False),
        ((*FED, "accepted"), "ids", False),
    ],
)
def test_a_step_whose_ids_are_the_next_tokens_has_a_call_of_several(
    inputs: tuple[str, ...], output: str, several: bool
) -> None:
    scalars = "".join(f"  smem {name}[2] in 0..9 input\n" for name in inputs)
    pool = "  pool work rows=8\n  buffer tile in work rows=8 slots=1 align=8 at 0\n"
    source = emit(parse_program(f"program p {{\n{pool}  hbm {output} rows=8 output\n{scalars}}}\n")).source
    assert ("\ndef decode_steps(" in source) == several
    assert not several or "(position < 9)" in source

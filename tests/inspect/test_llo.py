"""The compiler's bundles by phase: counted by hand for a few, and of a real kernel within the slots of every unit."""

from collections import Counter
from pathlib import Path

import pytest

from schedc.backends.pallas.aot.bundles import Bundle, lines_of, read_bundles
from schedc.backends.pallas.aot.compile import compile_with_bundles
from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.check import expected_transfers
from schedc.compiler.output import read_output, write_program
from schedc.compiler.pipeline import Request, build, compile_model
from schedc.errors import UserError
from schedc.inspect.llo import OUTSIDE, Llo, by_phase, llo
from schedc.inspect.numbered import Numbered
from schedc.inspect.subject import of_folder, of_request
from schedc.inspect.units import OTHER, units_table
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

UNITS = units_table()
PROGRAM = """
program two {
  pool work rows=8
  buffer a in work rows=8 slots=1 align=8 at 0
  phase first {
    compute zero(out: write a[0 +: 8])
  }
  phase second {
    compute zero(out: write a[0 +: 8])
  }
}
"""
AT = ' /* loc("kernel.py":{}:0 to :9) */'
FIRST, THEN, LAST = (AT.format(line) for line in (11, 12, 21))
SPILT = "[vmem:[#allocation7_spill]]"
LOADS = f"%v2 = vld [vmem:[#allocation2]]{FIRST}  ;;  %v3 = vld {SPILT}{FIRST}"
ACROSS = "%7 = vadd.xlane.xlu0 %v3  ;;  %v8 = vmul.f32 %v3  ;;  %v9 = vrot.slane %v3"
BUNDLES = f"""
 0x0   : > {{ %1 = smov 5 }}
 0x1   : > {{ {LOADS}  ;;  %s4 = sadd.s32 1 }}
 0x2   : > {{ }}
 0x3   : > {{ %5 = vst {SPILT} %v3{THEN} }}
 0x4   : > {{ %6 = vmatmul.bf16.mxu0 %v3{LAST}  ;;  {ACROSS} }}
"""


def within_slots(bundle: Bundle) -> bool:
    counts = Counter(UNITS.of(operation) for operation in bundle.operations)
    return all(count <= (UNITS.slots(unit, "tpu7x") or count) for unit, count in counts.items() if unit != OTHER)


def two() -> tuple[Program, Kernel]:
    """Phases at lines 10 and 20, a computation of two lines each."""
    program = parse_program(PROGRAM)
    first, second = program.body
    operations = ((10, first), (11, first.body[0]), (20, second), (21, second.body[0]))
    return program, Kernel("\n".join(f"line {n}" for n in range(1, 30)), operations)


def test_bundles_are_counted_by_phase_and_unit():
    program, kernel = two()
    found = by_phase(read_bundles(BUNDLES), kernel, Numbered(program), UNITS, 5)
    first, second = found
    assert (first.phase, first.bundles, first.empty) == ("first", 4, 1)
    assert first.operations == Counter(VLOAD=2, VSTORE=1, SALU=2)
    assert (first.spill_loads, first.spill_stores) == (1, 1)
    assert (second.phase, second.bundles, second.operations) == ("second", 1, Counter(MXU=1, XLU=1, VALU=2))
    shares = first.utilisation(UNITS, "tpu7x")
    assert (shares["VLOAD"], shares["SALU"], shares["MXU"], shares["DMA"]) == (2 / 12, 2 / 8, 0.0, None)
    assert set(first.utilisation(UNITS, "other").values()) == {None}, "slots of that chip are not known"
    assert [(hot.line, hot.text, hot.bundles, hot.empty) for hot in first.hottest] == [(11, "line 11", 4, 1)]
    whole = Llo(found, UNITS, "tpu7x", {}).whole()
    assert (whole.bundles, whole.operations["SALU"]) == (5, 2)


@pytest.mark.parametrize(
    ("operation", "unit"),
    [
        ("%1416 = vmatmul.mubr.bf16.vlgmr.msra.gmra.mrb[0].mxu0 %v13285_v1", "MXU"),
        ("%1425 = vmatpush1.bf16.msra.mxu0 %v819_v2", "MXU"),
        ("%v1 = vpop.f32.mrb[0].mxu0", "VPOP"),
        ("%v1 = vpop.xlane.xlu0 %v2", "VPOP"),
        ("%2 = vperm.xlu1 %v3", "XLU"),
        ("%v9 = vrot.slane %v3, 4", "VALU"),
        ("%3 = vpow2.f32 %v1", "EUP"),
        ("%3 = vexp2.f32 %v1", "EUP"),
        ("%v4 = vld [vmem:[%s1]]", "VLOAD"),
        ("%5 = vst [vmem:[%s1]] %v2", "VSTORE"),
        ("%v6 = vstv %s1", "VALU"),
        ("%vm7 = vmand %vm1, %vm2", "VMASK"),
        ("%12533 = dma.done.wait %s13205_s15, 36864", "SYNC"),
        ("%7 = dma.hbm_to_vmem [thread:$0] %s1", "DMA"),
        ("%s8 = scalar_lea.vmem [#allocation2], %s7", "SALU"),
        ("%s9 = sphi %s1, %s2", OTHER),
        ("%10 = int_to_ptr.vmem [resolvable:$true] %s9", OTHER),
    ],
)
def test_an_operation_belongs_to_a_unit(operation: str, unit: str):
    assert UNITS.of(operation) == unit


def test_an_unknown_phase_or_a_model_is_refused():
    program, kernel = two()
    made = Llo(by_phase(read_bundles(BUNDLES), kernel, Numbered(program), UNITS, 5), UNITS, "tpu7x", {})
    with pytest.raises(UserError, match="there is no phase 'third'; there are first, second"):
        made.phase("third")
    with pytest.raises(UserError, match="give a folder written by `schedc compile`"):
        llo(of_request(Request(load_spec("smollm2-135m"), parse_target("tpu7x"), StepShape(1, 256))))


@pytest.mark.kernel
def test_bundles_of_a_real_kernel_add_up_and_fit_their_slots(tmp_path: Path):
    """Of a folder, phase by phase; every bundle of it is counted once, and no unit has more than its slots."""
    compiled = compile_model(Request(load_spec("smollm2-135m"), parse_target("tpu7x"), StepShape(1, 512)))
    write_program(compiled, tmp_path)
    made = llo(of_folder(read_output(tmp_path)))
    whole = made.whole()
    listed = [bundle for phase in made.phases for bundle in phase.listing]
    assert sorted(bundle.number for bundle in listed) == list(range(whole.bundles))
    assert 0 < whole.empty < whole.bundles
    assert made.phase("qkv").operations["MXU"] > 100 and made.phase("attend").operations["EUP"] > 0
    starts = len(list(expected_transfers(compiled.program, compiled.kernel)))
    assert whole.operations["DMA"] == starts > 10 and made.phases[-1].phase == OUTSIDE
    for bundle in listed:
        counts = Counter(UNITS.of(operation) for operation in bundle.operations)
        assert all((UNITS.slots(unit, "tpu7x") or 99) >= count for unit, count in counts.items() if unit != OTHER), (
            bundle
        )


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize(("model", "devices"), [("kimi-k3-mini", 8), ("deepseek-v2-lite", 2)])
def test_no_bundle_has_more_operations_of_a_unit_than_slots(model: str, devices: int, tmp_path: Path):
    """What the shares are of: masks, experts, collectives, latents and states included."""
    target = parse_target("tpu7x:2x2x1", devices)
    _, program = build(Request(load_spec(model), target, StepShape(4, 1024, devices=devices)))
    path = tmp_path / "kernel.py"
    path.write_text(emit(program).source)
    report, text = compile_with_bundles(path, target.topology_name, devices)
    bundles = read_bundles(text)
    assert report.cycles is not None and report.cycles.total == len(bundles) == len(lines_of(bundles, "kernel.py"))
    for bundle in bundles:
        counts = Counter(UNITS.of(operation) for operation in bundle.operations)
        assert all((UNITS.slots(unit, "tpu7x") or 99) >= count for unit, count in counts.items() if unit != OTHER), (
            bundle
        )

"""Which measured rows are predicted, and how: the program that is simulated, and what of its time the row is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

from schedc.calibrate.constants import STEP_US, Values, machine_of
from schedc.calibrate.kernels import kernel_of
from schedc.cost.calibration.measurements import Measurement
from schedc.cost.inputs import default_inputs
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.ir.program import Program
from schedc.published.muse_spark import benchmarks as bench
from schedc.published.muse_spark.exchanges import all_gather, all_reduce
from schedc.published.muse_spark.step import step
from schedc.published.muse_spark.variant import Variant
from schedc.target.target import Target

Predict = Callable[[Machine, Values], float]

STEP_FORMATS = {
    "int4g128+bf16 df7ee05": ("int4", "bf16"),
    "int4g128+bf16 37bd619 round4": ("int4", "bf16"),
    "nvfp4+int8 final": ("nvfp4", "int8"),
    "nvfp4+bf16 afd8290": ("nvfp4", "bf16"),
}
"""Of the kernels with the final schedule, the formats of experts and of dense weights."""

FITTED_BATCHES = ("1", "4")
FITTED_STEPS = ("int4g128+bf16 df7ee05", "nvfp4+int8 final")
MIB_ROWS = 2048


@dataclass(frozen=True)
class Experiment:
    """`predict` gives the value in the row's unit; a fitted row weighs 1 / `sigma`, its relative error."""

    row: Measurement
    predict: Predict
    fitted: bool
    sigma: float = 0.05

    @property
    def name(self) -> str:
        row = self.row
        batch = "" if row.batch == "-" else f", batch {row.batch}" if row.batch.isdigit() else f", {row.batch}"
        context = "" if row.context in ("4096", "-") else f", {row.context}"
        return f"{row.metric}: {row.weights_format}{batch}{context}"


def experiments(rows: tuple[Measurement, ...], programs: Mapping[str, Program] | None = None) -> Iterator[Experiment]:
    """Those of `rows` that say something a simulation predicts, in their order.

    `programs` by their digest are those of generated kernels, whose rows are then fitted too.
    """
    kernels = partial(_kernel, programs or {})
    for row in rows:
        for recognise in (_step, _marginal, _slots, _phases, _stream, _collective, _copy, kernels):
            found = recognise(row)
            if found is not None:
                yield found
                break


def step_us(variant: Variant, machine: Machine, values: Values) -> float:
    return us(_program("step", variant), machine) + values[STEP_US]


def us(program: Program, machine: Machine) -> float:
    return simulate(program, machine).step_ns / 1000.0


@cache
def _program(kind: str, *what) -> Program:
    """Programs do not depend on the constants."""
    made: dict[str, Callable[..., Program]] = {
        "step": step,
        "dense": bench.dense_layer,
        "head": bench.lm_head,
        "moved": bench.dense_and_experts,
        "copies": bench.copies,
        "all-reduce": lambda *args: bench.collective(all_reduce("reduced", *args)),
        "all-gather": lambda *args: bench.collective(all_gather("gathered", *args)),
    }
    return made[kind](*what)


def _step(row: Measurement) -> Experiment | None:
    if row.metric != "step" or row.weights_format not in STEP_FORMATS:
        return None
    experts, dense = STEP_FORMATS[row.weights_format]
    variant = Variant(int(row.batch), experts, dense)  # type: ignore[arg-type]
    fitted = row.batch in FITTED_BATCHES and row.weights_format in FITTED_STEPS
    return Experiment(row, lambda m, v: step_us(variant, m, v) / 1000.0, fitted, 0.02)


def _marginal(row: Measurement) -> Experiment | None:
    """A layer more, and what is left of the step without its layers."""
    if row.weights_format != "int4+bf16 final" or row.metric not in ("marginal per layer", "fixed per step"):
        return None
    long, short = Variant(), Variant(layers=8)

    def layer(machine: Machine, values: Values) -> float:
        return (step_us(long, machine, values) - step_us(short, machine, values)) / (long.layers - short.layers)

    if row.metric == "marginal per layer":
        return Experiment(row, layer, False)
    return Experiment(row, lambda m, v: step_us(long, m, v) - long.layers * layer(m, v), False)


def _slots(row: Measurement) -> Experiment | None:
    """Tried before the wire was of bf16."""
    if row.metric != "step of 8 layers":
        return None
    slots = int(row.weights_format.rpartition("=")[2])
    variant = Variant(layers=8, expert_slots=slots, wire="f32")
    return Experiment(row, lambda m, v: step_us(variant, m, v), False)


PHASES = {
    "collectives": ("attention_sum", "latent_gather", "expert_sum", "output_gather"),
    "experts": ("experts",),
    "attention": ("heads", "attend"),
    "routing": ("route",),
    "lm_head (fixed part)": ("head",),
}
"""Parts of the step by which its authors account for its time, as phases of the program."""

EXPERT_PHASES = {"int4": "int4", "nvfp4 rewrite": "nvfp4"}


def _phases(row: Measurement) -> Experiment | None:
    """The time that the core is in the phases of a part, an execution of each."""
    if row.metric in PHASES and row.weights_format in ("int4+bf16 final", "int4+bf16"):
        names, variant = PHASES[row.metric], Variant()
    elif row.metric == "expert phase" and row.context == "identical rows L=8" and row.weights_format in EXPERT_PHASES:
        experts = EXPERT_PHASES[row.weights_format]
        names, variant = ("experts",), Variant(int(row.batch), experts, layers=8)  # type: ignore[arg-type]
    else:
        return None

    def time(machine: Machine, values: Values) -> float:
        phases = simulate(_program("step", variant), machine).phases
        return sum(phase.time_ns / phase.executions for phase in phases if phase.name in names) / 1000.0

    return Experiment(row, time, False)


def _stream(row: Measurement) -> Experiment | None:
    int4, nvfp4 = Variant(8), Variant(8, "nvfp4", "int8")
    known: dict[tuple[str, str], tuple[str, tuple[object, ...]]] = {
        ("bf16 dense", "dense layer"): ("dense", (int4, True)),
        ("int8 dense block-diagonal", "dense layer"): ("dense", (nvfp4, True)),
        ("int8 dense DMA only", "dense layer"): ("dense", (nvfp4, False)),
        ("bf16", "lm_head"): ("head", (int4,)),
        ("int8", "lm_head"): ("head", (nvfp4,)),
    }
    key = row.weights_format, row.metric
    if key in known:
        kind, what = known[key]
        return Experiment(row, lambda m, v: us(_program(kind, *what), m), True, 0.04)
    if key != ("int4+bf16", "DMA-only run dense+experts"):
        return None

    def rate(machine: Machine, values: Values) -> float:
        timeline = simulate(_program("moved", Variant()), machine)
        return timeline.hbm_bytes / timeline.step_ns / 1000.0

    return Experiment(row, rate, True, 0.03)


def _collective(row: Measurement) -> Experiment | None:
    """`[8 x 8192]` of f32 are 512 rows of 128; of an all-gather that is what each device has."""
    if row.model != "-" or row.metric not in ("all-reduce", "all-gather"):
        return None
    height, width = row.batch.partition("[")[2].partition("]")[0].split(" x ")
    rows, hierarchical = int(height) * int(width) // 128, row.weights_format.startswith("hier")
    wire = "bf16" if "bf16" in row.weights_format else "f32"
    what = (rows, wire, hierarchical) if row.metric == "all-reduce" else (rows, hierarchical)
    program = _program(row.metric, *what)
    return Experiment(row, lambda m, v: us(program, in_step(m)) / bench.TIMES, not hierarchical, 0.08)


def _copy(row: Measurement) -> Experiment | None:
    """One device sends, the others do not."""
    if row.weights_format == "three chip links in parallel":
        program, size = _program("copies", 16 * MIB_ROWS, (2, 4, 6)), 3 * 16 * 2**20
        return Experiment(row, lambda m, v: size / us(program, alone(m)) / 1000.0, False, 0.08)
    if not row.weights_format.startswith("remote VMEM copy"):
        return None
    where, number, unit = row.weights_format.removeprefix("remote VMEM copy ").split()
    rows = int(number) * (MIB_ROWS if unit == "MiB" else 2)
    program = _program("copies", rows, (1,) if where == "sibling" else (2,))
    return Experiment(row, lambda m, v: us(program, alone(m)), True, 0.08)


def _kernel(programs: Mapping[str, Program], row: Measurement) -> Experiment | None:
    """A step of a generated kernel, with its share of a call's dispatch in it as it was measured."""
    known = kernel_of(row)
    if known is None or known[0] not in programs:
        return None
    program, position = programs[known[0]], known[1]

    def time(machine: Machine, values: Values) -> float:
        return simulate(program, machine, default_inputs(program, position)).step_ns / 1e6

    return Experiment(row, time, True, 0.03)


def in_step(machine: Machine) -> Machine:
    """Devices that do nothing but exchange are held in step by it: none comes late."""
    return replace(machine, skew_ns=0.0)


def alone(machine: Machine) -> Machine:
    """One device of a chip sends, and its links carry nothing else."""
    network = machine.network
    shared = network.link_bytes_per_ns * network.devices_per_chip
    return replace(machine, skew_ns=0.0, network=replace(network, link_bytes_per_ns=shared))


def predict_all(found: tuple[Experiment, ...], target: Target, values: Values) -> list[float]:
    machine = machine_of(target, values)
    return [experiment.predict(machine, values) for experiment in found]

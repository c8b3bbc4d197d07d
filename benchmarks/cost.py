"""What the TPU compiler makes of every operation, measured in whole generated kernels, and the formulas fitted to it.

    python benchmarks/cost.py measure      compile the kernels below, write schedc/cost/measured.yaml (a few minutes)
    python benchmarks/cost.py collectives  compile programs of collectives alone, and add their operations to it
    python benchmarks/cost.py experts    compile models with experts, and add their operations to it
    python benchmarks/cost.py mixtures   compile models with block attention residuals, and add their operations to it
    python benchmarks/cost.py states       compile models with delta rules, and add their operations to it
    python benchmarks/cost.py latents      compile models with latents, and add their operations and messages to it
    python benchmarks/cost.py expanded     compile models with expanded latents, and add their operations to it
    python benchmarks/cost.py shared       compile models whose caches lie in turn, and add their operations to it
    python benchmarks/cost.py fit          fit the formulas to it, write schedc/cost/operations.yaml
    python benchmarks/cost.py compare      print measured and predicted cycles of every operation
    python benchmarks/cost.py simulate     predicted step, and how long the simulation takes, for every model

Issue cycles are bundles of the final schedule by source line, so an operation is measured among its neighbours, with
which the compiler overlaps it.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from collectives import all_reduces
from formula import fitted

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.report import CompileReport
from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.check import predicted_cycles
from schedc.compiler.copies import traced_operations
from schedc.compiler.pipeline import Request, build
from schedc.cost.bounds import bounds
from schedc.cost.machine import Machine
from schedc.cost.operations import FEATURES, CycleTable, Features, Work, operations_file
from schedc.cost.simulate import simulate
from schedc.ir.program import Compute, Loop, Op, Pool, Program, RemoteStart, Start, Wait
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import StepShape
from schedc.placement.rules import PlacementRules
from schedc.schedule.build import schedule
from schedc.spec.load import list_models, load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import Target, parse_target
from schedc.yaml_text import format_yaml, parse_yaml

TARGET = "tpu7x"
FOLDER = Path(__file__).parents[1] / "schedc" / "cost"
MEASURED, FITTED = FOLDER / "measured.yaml", FOLDER / "operations.yaml"
IN_FLIGHT = {"value": 16, "source": "assumed: no source says how many transfers a DMA engine serves at a time"}
ASSUMED = {"when": 1.0, "loop": 4.0, "scalar": 2.0, "signal": 4.0, "await": 4.0}
HEAD = (
    f"# Issue cycles of every operation of the kernels below, on {TARGET}: a number for each place it stands.\n"
    "# Made by: python benchmarks/cost.py measure; … collectives; … experts; … mixtures; … states; … latents;\n"
    "# … expanded\n"
)
KERNELS = [
    (model, rows, dtype, slot)
    for model, rows, dtype, slot in (
        ("smollm2-135m", 1, "bf16", 2.0),
        ("smollm2-135m", 8, "bf16", 4.0),
        ("smollm2-135m", 16, "bf16", 2.0),
        ("smollm2-135m", 8, "f32", 2.0),
        ("qwen3-0.6b", 1, "bf16", 2.0),
        ("qwen3-0.6b", 2, "bf16", 4.0),
        ("qwen3-0.6b", 16, "bf16", 4.0),
        ("qwen3-0.6b", 4, "f32", 2.0),
        ("qwen3-8b", 4, "bf16", 4.0),
        ("llama-3.1-8b", 1, "bf16", 2.0),
        ("llama-3.1-8b", 3, "bf16", 3.0),
        ("llama-3.1-8b", 16, "bf16", 5.0),
        ("llama-2-7b", 2, "bf16", 2.0),
        ("mistral-nemo", 8, "bf16", 5.0),
        ("qwen2.5-7b", 3, "bf16", 2.0),
        ("starcoder2-7b", 1, "bf16", 4.0),
    )
]


def with_dtype(spec: ModelSpec, dtype: str) -> ModelSpec:
    weights = spec.quantization.model_copy(update={"weights": dtype})
    return spec.model_copy(update={"quantization": weights, "kv": spec.kv.model_copy(update={"dtype": dtype})})


def stacked(program: Program) -> Program:
    """Addresses without sharing: buffer after buffer."""
    top: dict[str, int] = defaultdict(int)
    buffers = []
    for buffer in program.buffers:
        buffers.append(dataclasses.replace(buffer, address=top[buffer.pool]))
        top[buffer.pool] += -(-buffer.rows * buffer.slots // 8) * 8
    limit = parse_target(TARGET).capability.vmem_usable_bytes
    return dataclasses.replace(
        program,
        buffers=tuple(buffers),
        pools=tuple(Pool(pool.name, top[pool.name]) for pool in program.pools),
        attributes=(*program.attributes, ("vmem_limit_bytes", limit)),
    )


def cycles_of(program: Program, target: Target | None = None) -> tuple[list[tuple[Op, float]], CompileReport]:
    """Issue cycles of every operation, of one copy of it where it is unrolled.

    What stands on a loop's own line is the end of its body: stalls until the last computation's results are there.
    """
    program = program if program.buffers[0].address is not None else stacked(program)
    kernel, copies = emit(program), Counter(id(op) for _, op in traced_operations(program))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(kernel.source)
        topology = (target or parse_target(TARGET)).topology_name
        report = compile_kernel(path, topology, program.devices)
    first = sorted({line for line, _ in kernel.operations})
    after = dict(zip(first, [*first[1:], kernel.source.count("\n") + 1], strict=True))
    on_line = {
        id(op): sum(count for at, count in report.line_cycles.items() if line <= at < after[line])
        for line, op in kernel.operations
    }
    for _, op in kernel.operations:
        if isinstance(op, Loop) and not op.unroll and any(isinstance(inner, Compute) for inner in op.body):
            last = [inner for inner in op.body if isinstance(inner, Compute)][-1]
            on_line[id(last)] += on_line[id(op)]
            on_line[id(op)] = 0
    return [(op, on_line[id(op)] / max(1, copies[id(op)])) for _, op in kernel.operations], report


Found = dict[tuple[str, tuple[str, ...], tuple[tuple[str, Any], ...]], list[float]]
"""Cycles by kind, operands and attributes."""


def add_found(found: Found, op: Compute, cycles: float) -> None:
    work = Work.of(op, parse_target(TARGET))
    found[op.kind, tuple(sorted(work.operands)), tuple(work.attributes.items())].append(round(cycles, 1))


def rows_of(found: Found) -> list[dict[str, Any]]:
    return [
        {"operation": kind, "operands": list(operands), "attributes": dict(attributes), "cycles": cycles}
        for (kind, operands, attributes), cycles in sorted(found.items())
    ]


def measure() -> None:
    found: Found = defaultdict(list)
    issue: dict[str, list[float]] = {"start": [], "wait": []}
    kernels, versions = [], ""
    for model, rows, dtype, slot in KERNELS:
        spec = with_dtype(load_spec(model), dtype)
        program = schedule(spec, StepShape(rows, 4096), parse_target(TARGET), "ring", {"slot_mib": slot}).program
        try:
            operations, report = cycles_of(program)
        except Exception as error:
            print(model, rows, dtype, slot, "not measured:", str(error).splitlines()[0])
            continue
        assert report.cycles is not None
        versions = f"jax {report.versions.jax}, libtpu {report.versions.libtpu}"
        kernels.append({"model": model, "rows": rows, "dtype": dtype, "slot_mib": slot, "cycles": report.cycles.total})
        starts = [t for t in report.transfers if t.kind == "start"]
        print(kernels[-1], f"{sum(t.predicated for t in starts)} of {len(starts)} starts predicated", flush=True)
        for op, cycles in operations:
            match op:
                case Compute():
                    add_found(found, op, cycles)
                case Start() | Wait():
                    issue[type(op).__name__.lower()].append(round(cycles, 1))
    spread = {
        kind: {"median": float(np.median(c)), "least": min(c), "most": max(c), "places": len(c)}
        for kind, c in issue.items()
    }
    data = {"target": TARGET, "versions": versions, "kernels": kernels, "issue": spread, "operations": rows_of(found)}
    MEASURED.write_text(HEAD + format_yaml(data))


def measure_collectives() -> None:
    """Every algorithm, wire and size of an all-reduce over the devices of a host."""
    found: Found = defaultdict(list)
    for program in all_reduces(parse_target(TARGET)):
        for op, cycles in cycles_of(program)[0]:
            if isinstance(op, Compute) and op.kind.endswith("_wire"):
                add_found(found, op, cycles)
    replace_measured(found, lambda kind: kind.endswith("_wire"))


ROUTERS = (
    {"experts": 896, "score": "sigmoid", "selection_bias": True},
    {"experts": 256, "score": "sigmoid", "selection_bias": True, "groups": 8, "groups_kept": 4},
)
EXPERTS = ("route", "expert_weight", "add_weighted", "gate_rows")


def measure_experts() -> None:
    """What belongs to experts, in models of three layers."""
    found: Found = defaultdict(list)
    few = product(("qwen3-30b-a3b",), (1, 4, 16), (2, 8), (False,), ({},))
    gated = product(("mixtral-8x22b", "qwen3-30b-a3b"), (1, 16), (2,), (True,), ({},))
    many = product(("qwen3-30b-a3b",), (1, 4, 16), (8, 16), (False,), ROUTERS)
    for model, rows, top_k, shared, router in (*few, *gated, *many):
        data = load_spec(model).model_dump(mode="json", exclude_none=True)
        data["layers"][0]["repeat"] = 3
        moe = data["layers"][0]["pattern"][0]["feed_forward"]
        gate = {"kind": "dense", "width": moe["width"], "gated": True, "activation": "silu"}
        moe |= {"top_k": top_k, **({"shared": gate, "shared_gate": True} if shared else {})}
        if router:
            moe["experts"] = router["experts"]
            moe["router"] |= {name: value for name, value in router.items() if name != "experts"}
        spec = ModelSpec.model_validate(data)
        settings = {"depth": 3, "expert_slots": 2}
        program = schedule(spec, StepShape(rows, 4096), parse_target(TARGET), "ring", settings).program
        for op, cycles in cycles_of(program)[0]:
            if isinstance(op, Compute) and op.kind in EXPERTS:
                add_found(found, op, cycles)
                print(model, rows, top_k, moe["experts"], op.kind, cycles, flush=True)
    replace_measured(found, lambda kind: kind in EXPERTS)


MIXTURES = ("mixed_norm", "mixed_norm_of_one", "append_sum", "append_sum_of_one")


def measure_mixtures() -> None:
    """Block attention residuals of eight layers in blocks of one and of four."""
    found: Found = defaultdict(list)
    for model, rows, block in product(("qwen3-0.6b", "qwen3-8b"), (1, 8, 16), (1, 4)):
        data = load_spec(model).model_dump(mode="json")
        data["layers"][0]["repeat"] = 8
        data["residual"] = {"kind": "block_attention", "block": block, "eps": 1e-5}
        spec = ModelSpec.model_validate(data)
        program = schedule(spec, StepShape(rows, 4096), parse_target(TARGET), "ring", {"slot_mib": 4.0}).program
        for op, cycles in cycles_of(program)[0]:
            if isinstance(op, Compute) and op.kind in MIXTURES:
                add_found(found, op, cycles)
                print(model, rows, block, op.kind, cycles, flush=True)
    replace_measured(found, lambda kind: kind in MIXTURES)


STATES = ("by_sequence", "delta_gates", "short_conv", "delta_rule", "delta_outputs")


def measure_states() -> None:
    """Both delta rules, of few heads and of many, which go in groups."""
    found: Found = defaultdict(list)
    norm = {"kind": "rms", "eps": 1e-6}
    dims = {"key_dim": 128, "value_dim": 128, "conv": 4, "output_norm": norm}
    kda = {"kind": "kda", "decay": {"kind": "scaled_sigmoid", "bound": 5.0}, "decay_rank": 128} | dims
    gated = {"kind": "gated_delta"} | dims
    heads = [kda | {"heads": count} for count in (3, 4, 32)]
    heads += [gated | {"key_heads": keys, "value_heads": values} for keys, values in ((2, 6), (16, 48))]
    for mixer, rows in product(heads, (1, 4, 8)):
        data = load_spec("qwen3-0.6b").model_dump(mode="json", exclude_none=True)
        data["layers"][0]["pattern"][0]["mixer"] = mixer
        spec = ModelSpec.model_validate(data)
        program = schedule(spec, StepShape(rows, 4096), parse_target(TARGET), "ring", {"slot_mib": 4.0}).program
        for op, cycles in cycles_of(program)[0]:
            if isinstance(op, Compute) and op.kind in STATES:
                add_found(found, op, cycles)
                print(mixer["kind"], rows, op.kind, cycles, flush=True)
    replace_measured(found, lambda kind: kind in STATES)


LATENTS = (
    "latent_token", "latent_queries", "each_head", "gather_queries", "attend_latent", "latent_outputs", "join_values",
    "join_panels", "pack_panels", "as_operand", "delta_rule", "sum_wire", "pack_wire", "unpack_wire",
    "pack_parts", "unpack_parts", "sum_scaled", "operand_of_part",
)  # fmt: skip
WITH_LATENTS = (("deepseek-v2-lite", 1, 1), ("deepseek-v2-lite", 1, 4), ("kimi-k3", 32, 1))


def measure_latents() -> None:
    """What belongs to latents and to exchanges between many devices, in whole models; added to what is measured."""
    for model, devices, rows in WITH_LATENTS:
        found: Found = defaultdict(list)
        sends: list[float] = []
        spec, target = load_spec(model), parse_target(f"{TARGET}:2x2x4", devices)
        shape = StepShape(rows, 4096, devices=devices, communication=communication_for(spec.hidden, rows, target))
        _, program = build(Request(spec, target, shape, settings={"slot_mib": 4.0}))
        for op, cycles in cycles_of(program, target)[0]:
            if isinstance(op, Compute) and op.kind in LATENTS:
                add_found(found, op, cycles)
            elif isinstance(op, RemoteStart):
                sends.append(round(cycles, 1))
        print(model, rows, sum(len(values) for values in found.values()), flush=True)
        add_measured(found, sends)


EXPANDED = (
    "expanded_latent", "expanded_token", "expanded_queries", "attend_expanded", "attend_expanded_tokens",
    "join_expanded",
)  # fmt: skip


def measure_expanded() -> None:
    """What belongs to latent attention with an expanded cache, of few heads and of many."""
    found: Found = defaultdict(list)
    sizes = ((1, 1), (1, 4), (2, 2), (4, 4), (8, 1), (8, 8))
    for devices, rows, rows_are in (*((*size, "sequences") for size in sizes), (4, 8, "tokens"), (8, 8, "tokens")):
        data = load_spec("deepseek-v2-lite").model_dump(mode="json", exclude_none=True)
        data["layers"] = [data["layers"][0]]
        data["layers"][0]["repeat"] = 3
        data["layers"][0]["pattern"][0]["mixer"] |= {"cache": "expanded", "output_gate": True}
        spec, target = ModelSpec.model_validate(data), parse_target(f"{TARGET}:2x2x1", devices)
        talk = communication_for(spec.hidden, rows, target)
        shape = StepShape(rows, 4096, devices=devices, communication=talk, rows_are=rows_are)
        for op, cycles in cycles_of(build(Request(spec, target, shape))[1], target)[0]:
            if isinstance(op, Compute) and op.kind in EXPANDED:
                add_found(found, op, cycles)
                print(devices, rows, op.kind, cycles, flush=True)
    replace_measured(found, lambda kind: kind in EXPANDED)


SHARED = ("join_queries", "part_softmaxes", "combine_softmaxes")


def measure_shared() -> None:
    """What belongs to tiles of a cache in turn: of latents, of few heads and of many, in whole groups of 8 and not."""
    found: Found = defaultdict(list)
    of_heads = ((16, 2, 8), (32, 1, 4), (64, 1, 4))
    mixers: list[dict[str, Any]] = [{"heads": heads, "kv_heads": kv} for heads, kv, _ in of_heads]
    cases = [(mixer, of[2], rows) for mixer, of in zip(mixers, of_heads, strict=True) for rows in (1, 4)]
    for mixer, devices, rows in (*cases, ({}, 2, 1), ({}, 2, 4)):
        data = load_spec("qwen3-0.6b" if mixer else "deepseek-v2-lite").model_dump(mode="json", exclude_none=True)
        data["layers"] = [data["layers"][0]]
        data["layers"][0]["repeat"] = 3
        data["layers"][0]["pattern"][0]["mixer"] |= mixer
        spec, target = ModelSpec.model_validate(data), parse_target(f"{TARGET}:2x2x1", devices)
        talk, rules = communication_for(spec.hidden, rows, target), PlacementRules(kv="sequence")
        shape = StepShape(rows, 4096, devices=devices, placement=rules, communication=talk)
        for op, cycles in cycles_of(build(Request(spec, target, shape))[1], target)[0]:
            if isinstance(op, Compute) and op.kind in SHARED:
                add_found(found, op, cycles)
                print(mixer.get("heads"), mixer.get("kv_heads"), devices, rows, op.kind, cycles, flush=True)
    replace_measured(found, lambda kind: kind in SHARED)


def add_measured(found: Found, sends: list[float]) -> None:
    """Beside what is there, but in place of the same shapes."""
    data = parse_yaml(MEASURED.read_text())
    rows = rows_of(found)
    shapes = [{**row, "cycles": None} for row in rows]
    others = [row for row in data["operations"] if {**row, "cycles": None} not in shapes]
    data["operations"] = sorted([*others, *rows], key=lambda row: row["operation"])
    if sends:
        spread = {"median": float(np.median(sends)), "least": min(sends), "most": max(sends), "places": len(sends)}
        data["issue"]["remote_start"] = spread
    MEASURED.write_text(HEAD + format_yaml(data))


def replace_measured(found: Found, of_these: Callable[[str], bool]) -> None:
    """Put new measurements in the place of all of the same kinds."""
    data = parse_yaml(MEASURED.read_text())
    others = [row for row in data["operations"] if not of_these(row["operation"])]
    data["operations"] = sorted([*others, *rows_of(found)], key=lambda row: row["operation"])
    MEASURED.write_text(HEAD + format_yaml(data))


# Fitting


REPEATED = ("delta_rule",)
"""Of these a step of several sequences has copies that overlap; counted is one alone, which a single sequence has."""


def points() -> dict[str, list[tuple[Features, float]]]:
    """(features, mean cycles, or of `REPEATED` the most) of every shape that was measured, by kind."""
    data = parse_yaml(MEASURED.read_text())
    cost = parse_target(data["target"]).cost
    rates = dict(cost.dot_bytes_per_cycle)
    found: dict[str, list[tuple[Features, float]]] = defaultdict(list)
    for row in data["operations"]:
        work = Work(row["attributes"], frozenset(row["operands"]), rates, cost.dot_drain_cycles)
        middle = np.max if row["operation"] in REPEATED else np.mean
        found[row["operation"]].append((FEATURES[row["operation"]](work), float(middle(row["cycles"]))))
    return found


def fit() -> None:
    data = parse_yaml(MEASURED.read_text())
    kinds = {}
    for kind, rows in sorted(points().items()):
        base, per, error = fitted(rows)
        kinds[kind] = {"base": base, "per": per, "points": len(rows), "error": error}
        print(f"{kind:18} {len(rows):3} shapes, error {error:5.1%}: {base} + {per}")
    median = f"median of measured.yaml ({data['versions']})"
    issue = {kind: {"value": spread["median"], "source": median} for kind, spread in data["issue"].items()}
    for kind, value in ASSUMED.items():
        issue[kind] = {"value": value, "source": "assumed: a few scalar instructions"}
    out = {
        "target": data["target"],
        "source": f"fit of measured.yaml ({data['versions']})",
        "transfers_in_flight": IN_FLIGHT,
        "issue": issue,
        "kinds": kinds,
    }
    head = "# Issue cycles by kind: base + sum of per[feature] * feature. Made by: python benchmarks/cost.py fit\n"
    FITTED.write_text(head + format_yaml(out))


def compare() -> None:
    """Every measured shape, and whole kernels with each loop body once."""
    file = operations_file()
    for kind, rows in sorted(points().items()):
        formula = file.kinds[kind]
        for features, cycles in rows:
            predicted = formula.base + sum(formula.per[name] * amount for name, amount in features.items() if amount)
            text = ", ".join(f"{name} {amount:g}" for name, amount in features.items() if amount)
            print(f"{kind:18} {cycles:8.0f} measured {predicted:8.0f} predicted  {text}")
    for kernel in parse_yaml(MEASURED.read_text())["kernels"]:
        spec = with_dtype(load_spec(kernel["model"]), kernel["dtype"])
        shape, target = StepShape(kernel["rows"], 4096), parse_target(TARGET)
        program = schedule(spec, shape, target, "ring", {"slot_mib": kernel["slot_mib"]}).program
        total = predicted_cycles(program, CycleTable.on(target))
        print(
            f"{kernel['model']:16} rows {kernel['rows']:2} {kernel['dtype']}: "
            f"{kernel['cycles']} measured, {total:.0f} predicted ({total / kernel['cycles'] - 1:+.1%})"
        )


def simulations() -> None:
    target = parse_target(TARGET)
    for model in list_models():
        for policy in ("just_in_time", "double_buffer", "ring"):
            program = schedule(load_spec(model), StepShape(1, 4096), target, policy).program
            began = time.perf_counter()
            timeline = simulate(program, Machine.of(target))
            took = time.perf_counter() - began
            name, least_ns = bounds(program, Machine.of(target), timeline).largest
            print(
                f"{model:16} {policy:14} {timeline.step_ns / 1e3:9.1f} us, {timeline.step_ns / least_ns:.3f} x {name} "
                f"bound, HBM busy {timeline.hbm_busy_fraction:.1%}, {timeline.transfers} transfers, {took:.2f} s"
            )


if __name__ == "__main__":
    commands = {
        "measure": measure, "collectives": measure_collectives, "experts": measure_experts,
        "latents": measure_latents, "expanded": measure_expanded, "mixtures": measure_mixtures,
        "states": measure_states, "shared": measure_shared, "fit": fit, "compare": compare, "simulate": simulations,
    }  # fmt: skip
    commands[sys.argv[1]]()

"""The Python API: what `import schedc` gives.

    import schedc
    made = schedc.compile("smollm2-135m", "tpu7x", rows=4)
    made.report.step_us, made.program, made.source, made.timeline(), made.verify()

`predict` stops before the proof: it is what comparing many orders of a large model needs. Names and parameters are
those of the command line (`schedc compile --help`). Errors are `schedc.errors`: UserError and SpecError for bad input,
CheckFailed for what does not fit or is not safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from schedc.api_html import card
from schedc.compiler.pipeline import Compiled, Request, build, compile_model
from schedc.cost import report as cost
from schedc.cost.machine import Machine
from schedc.cost.report import CostReport
from schedc.cost.simulate import simulate
from schedc.cost.timeline import Timeline
from schedc.errors import UserError
from schedc.ir.program import Program
from schedc.names import nearest
from schedc.schedule.build import Schedule
from schedc.schedule.plan import Plan
from schedc.spec.importers.import_config import import_config
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import Target
from schedc.validation import fault_of

if TYPE_CHECKING:
    from schedc.compiler.check import CheckReport
    from schedc.compiler.interpret import InterpretReport

__all__ = ["Compilation", "ModelSpec", "Prediction", "Program", "Target", "compile", "predict", "read_spec"]


@dataclass(frozen=True)
class Prediction:
    """A schedule with addresses, not proven yet. Shows itself in a notebook."""

    request: Request
    made: Schedule
    program: Program
    """What one device executes: pools, buffers with addresses, transfers, waits, loops."""

    @property
    def spec(self) -> ModelSpec:
        return self.request.spec

    @property
    def target(self) -> Target:
        return self.request.target

    @property
    def plan(self) -> Plan:
        """What the policy decided."""
        return self.made.plan

    @cached_property
    def report(self) -> CostReport:
        """The predicted step: times in µs, bounds, phases."""
        return cost.predict(self.program, self.target)

    def timeline(self, inputs: Mapping[str, Sequence[int]] | None = None) -> Timeline:
        """One simulated step with its events, times in ns; `inputs` as `position` in place of the default scalars.

        Raises ValueError for an input that the program does not have, or of another length.
        """
        return simulate(self.program, Machine.of(self.target), inputs, events=True)

    def __repr__(self) -> str:
        shape, kind = self.request.shape, type(self).__name__
        return (
            f"<{kind} {self.spec.name}: {self.target.name}, {shape.devices} devices, rows {shape.rows}, policy "
            f"{self.request.policy}, {self.report.step_us:,.1f} µs predicted>"
        )

    def _repr_html_(self) -> str:
        return card(self.request, self.program, self.report)


@dataclass(frozen=True, repr=False)
class Compilation(Prediction):
    """A proven program and its kernel. Shows itself in a notebook."""

    compiled: Compiled

    @property
    def source(self) -> str:
        """The kernel as one Python file, which imports only jax."""
        return self.compiled.kernel.source

    @property
    def report(self) -> CostReport:
        """The predicted step: times in µs, bounds, phases."""
        return self.compiled.cost

    @property
    def manifest(self) -> dict[str, Any]:
        """What a program that loads the kernel must know (`manifest.json`)."""
        from schedc.compiler.manifest import manifest

        return manifest(self.compiled)

    def check(self, timeout: float = 600) -> CheckReport:
        """What the TPU compiler makes of the kernel, ahead of time; its `problems` are empty if all agrees.

        Raises CheckFailed if it does not compile. `timeout` in seconds.
        """
        from tempfile import TemporaryDirectory

        from schedc.compiler.check import check
        from schedc.compiler.output import KERNEL, write_program

        with TemporaryDirectory(prefix="schedc-") as folder:
            write_program(self.compiled, Path(folder))
            return check(self.compiled, Path(folder) / KERNEL, timeout)

    def verify(
        self, timeout: float = 600, dump: str | None = None, reproducer: str | Path | None = None
    ) -> InterpretReport:
        """Interpret a shrunk model with the same schedule beside the plain-JAX reference: `problems` is empty if all
        agrees. Takes a minute or two; `timeout` in seconds.

        `dump`: a phase of it, or "all": what it leaves is compared with the reference's values, and every comparison
        stands in the `dump` of the runs, up to the first step in which something differs (`telling` is the first run
        with problems). `reproducer`: a new folder that gets what shows the first problem again with jax alone.
        Raises UserError for a phase that there is not, and for a folder that is not empty.
        """
        from schedc.compiler.dumped import phases_to_dump
        from schedc.compiler.interpret import verify_model
        from schedc.compiler.reproducer import refuse_used_folder

        phases = () if dump is None else phases_to_dump(self.request, dump)
        folder = None if reproducer is None else Path(reproducer)
        if folder is not None:
            refuse_used_folder(folder)
        return verify_model(self.request, None, timeout, phases, folder)

    def generate(self, prompt: str, max_tokens: int = 16, weights: str | Path | None = None) -> Iterator[str]:
        """The text that follows `prompt`, a token at a time, greedily, by the kernel: on a TPU, else interpreted.

        `weights`: a GGUF file, or a folder of safetensors with its tokenizer.json; left out, those of a package.
        """
        from schedc.run.runnable import Runnable

        made, request = self.made, self.request
        runnable = Runnable(self.source, self.spec, made.layouts, request.shape, made.plan.kv_tokens)
        return runnable.generate(prompt, max_tokens, None if weights is None else Path(weights))

    def save(self, folder: str | Path) -> Path:
        """Write kernel.py, program.ir, manifest.json and report.json, all or nothing, as `schedc compile` does."""
        from schedc.compiler.output import new_output, write_program, write_report

        with new_output(Path(folder)) as draft:
            write_program(self.compiled, draft)
            write_report(self.compiled, None, draft)
        return Path(folder)


def read_spec(model: str | Path | ModelSpec) -> ModelSpec:
    """A spec by the name of a shipped model, from a YAML file, or from a Hugging Face `config.json`."""
    if isinstance(model, ModelSpec):
        return model
    if Path(model).suffix == ".json":
        return import_config(Path(model))
    return load_spec(str(model))


def predict(model: str | Path | ModelSpec, target: str | None = None, **options: Any) -> Prediction:
    """Schedule a model, give its buffers addresses, predict its step: `compile` without the proof and the kernel."""
    request = _request(model, target, **options)
    made, program = build(request)
    return Prediction(request, made, program)


def compile(
    model: str | Path | ModelSpec,
    target: str | None = None,
    *,
    policy: str | None = None,
    settings: Mapping[str, int | float] | None = None,
    **options: Any,
) -> Compilation:
    """Schedule a model, prove the schedule safe, write its kernel. Neither jax nor a TPU is needed.

    `target` is that of the command line (tpu7x:2x2x1, or 2x2x4) or of the plan if it is left out.

    `settings` are those of the policy. Options: `rows`, `context`, `devices`, `placement` (a file), `rows_are`
    ("sequences" or "tokens"), `weights`, `kv`, `latent_cache`, `window_cache`, `collective`, `wire`, `forms`, `taps`,
    `plan` (a file, or one that comes with schedc), `logits`; left out, they are as on the command line, or as the plan
    says.

    Raises SpecError or UserError for bad input, CheckFailed for a schedule that does not fit or is not safe.
    """
    compiled = compile_model(_request(model, target, policy=policy, settings=settings, **options))
    return Compilation(compiled.request, compiled.schedule, compiled.program, compiled)


def _request(
    model: str | Path | ModelSpec,
    target: str | None,
    *,
    rows: int | None = None,
    logits: bool = False,
    settings: Mapping[str, int | float] | None = None,
    forms: Mapping[str, str] | None = None,
    taps: Sequence[int] = (),
    placement: str | Path | None = None,
    plan: str | Path | None = None,
    **options: Any,
) -> Request:
    from schedc.cli.options import ScheduleOptions

    own: dict[str, Any] = {
        "model": model,
        "target": target,
        "rows": rows,
        "logits": logits,
        "settings": settings,
        "forms": forms,
    }
    own |= {"taps": taps, "placement": placement, "plan": plan}
    faults = _faults(own | options)
    if faults:
        raise UserError("\n".join(faults))
    given = ScheduleOptions(
        target=target,
        settings=[f"{name}={value}" for name, value in (settings or {}).items()],
        forms=[f"{stored}={form}" for stored, form in (forms or {}).items()] or None,
        taps=",".join(map(str, taps)) or None,
        placement=None if placement is None else Path(placement),
        plan=None if plan is None else str(plan),
        **options,
    )
    return given.request(read_spec(model), rows, logits)


def _faults(options: Mapping[str, Any]) -> list[str]:
    """What is not of the type that the command line has for it. Raises TypeError for what is no option."""
    from schedc.cli.options import ScheduleOptions

    types: dict[str, Any] = get_type_hints(ScheduleOptions, include_extras=True)
    types |= {"model": str | Path | ModelSpec, "rows": int | None, "logits": bool, "taps": Sequence[int]}
    types |= dict.fromkeys(("placement", "plan"), str | Path | None)
    types |= {"settings": Mapping[str, int | float] | None, "forms": Mapping[str, str] | None}
    for name in options.keys() - types.keys():
        close = nearest(name, types)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise TypeError(f"schedc: unexpected keyword argument '{name}'{hint}")
    faults = ((name, fault_of(types[name], value)) for name, value in options.items())
    return [f"{name}: {fault}" for name, fault in faults if fault]

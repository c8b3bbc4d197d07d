"""The options that say what a predicted step meets, and what its operations cost."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from schedc.cost.machine import Machine
    from schedc.cost.routing import Load
    from schedc.target.target import Target

_PANEL = "Prediction"


def _option(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **settings)


@dataclass(frozen=True)
class PredictOptions:
    """What the prediction assumes. Nothing of it changes the kernel."""

    routing: Annotated[
        str | None,
        _option(
            "--routing",
            metavar="LAW|FILE",
            help="How rows choose experts: uniform, zipf:1.1, or a file of choices (a line a row and layer).",
            show_default="uniform",
        ),
    ] = None
    experts: Annotated[
        Literal["slowest", "mean"] | None,
        _option(
            "--experts",
            help="Different experts a device: of the slowest one of each layer, or of the mean one.",
            show_default="slowest",
        ),
    ] = None
    seed: Annotated[int | None, _option("--seed", help="Of the draws of --routing.", show_default="0", min=0)] = None
    skew_ns: Annotated[
        float | None,
        _option(
            "--skew-ns",
            help="How late other devices are in every exchange.",
            show_default="the chip's figure",
            min=0,
            max=1e9,
        ),
    ] = None
    clock_mhz: Annotated[
        float | None, _option("--clock-mhz", help="Of the core.", show_default="the chip's default", min=1, max=1e5)
    ] = None
    profile: Annotated[
        str | None,
        _option(
            "--profile",
            metavar="FILE|NAME",
            help="Cycles that `schedc profile` wrote, or a shipped table of them, in place of the fitted formulas.",
        ),
    ] = None

    def load(self) -> "Load":
        """Raises UserError."""
        from schedc.cost.routing import Load, parse_routing

        return Load(parse_routing(self.routing or "uniform"), self.experts or "slowest", self.seed or 0)

    def machine(self, target: "Target") -> "Machine":
        """Raises UserError for a profile that is none."""
        from dataclasses import replace

        from schedc.cost.machine import Machine
        from schedc.cost.profile import read_profile

        machine = Machine.of(target, None if self.profile is None else read_profile(self.profile))
        clock = machine.clock_ghz if self.clock_mhz is None else self.clock_mhz / 1000.0
        return replace(machine, clock_ghz=clock, skew_ns=machine.skew_ns if self.skew_ns is None else self.skew_ns)


@dataclass(frozen=True)
class SearchedPredictOptions(PredictOptions):
    """The same beside a search, whose random numbers are --seed."""

    seed: Annotated[
        int | None, _option("--routing-seed", help="Of the draws of --routing.", show_default="0", min=0)
    ] = None

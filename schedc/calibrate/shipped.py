"""The calibration that comes with schedc: figures of a chip's cost section, and how they were found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schedc.calibrate.constants import CHIP, FREE, IN_FLIGHT, STEP_US
from schedc.errors import UserError
from schedc.target.load import calibration_path
from schedc.target.target import Target
from schedc.yaml_text import format_yaml, parse_yaml

DIGITS = {IN_FLIGHT: 0, STEP_US: 1, "hbm_stream_gb_s": 0, "dma_descriptor_ns": 1, "link_shared_gb_s": 1}


def shipped_values(target: Target) -> dict[str, float]:
    """The constants that a target predicts with. Raises UserError for a chip that has no calibration."""
    path = calibration_path(target.chip.name)
    if not path.exists():
        raise UserError(f"{target.chip.name} has no calibration; schedc calibrate --fit --write {path.name} makes one")
    values = {constant.figure: float(getattr(target.cost, constant.figure)) for constant in CHIP}
    outside = parse_yaml(path.read_text(encoding="utf-8"))["published"][STEP_US]["value"]
    return values | {STEP_US: outside, IN_FLIGHT: float(target.cost.hbm_in_flight or 0)}


def rounded(values: dict[str, float]) -> dict[str, float]:
    """As they are shipped: what is said of the shipped ones is said of these."""
    return {name: round(value, DIGITS.get(name, 3)) for name, value in values.items()}


def calibration_text(values: dict[str, float], source: str) -> str:
    """The file that goes before the figures of a chip; and what a step of theirs takes outside of its kernel."""
    what = {constant.figure: constant.what for constant in FREE}
    what[IN_FLIGHT] = "transfers that share the HBM at a time; chosen by trying"

    def figure(name: str) -> dict[str, Any]:
        value = int(values[name]) if name == IN_FLIGHT else values[name]
        return {"value": value, "source": source, "note": what[name]}

    of_chip = [*(constant.figure for constant in CHIP), IN_FLIGHT]
    sections = {"cost": {name: figure(name) for name in of_chip}, "published": {STEP_US: figure(STEP_US)}}
    return f"# Made by: schedc calibrate --fit --write FILE\n{format_yaml(sections)}"


def write_calibration(path: Path, values: dict[str, float], source: str) -> None:
    path.write_text(calibration_text(values, source), encoding="utf-8")

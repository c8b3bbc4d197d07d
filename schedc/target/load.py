"""Read chip files: those that come with schedc, and a user's own."""

from pathlib import Path
from typing import Any

from schedc.errors import TargetError
from schedc.files import read_text
from schedc.names import nearest
from schedc.target.chip import Chip
from schedc.validation import validate
from schedc.yaml_text import YamlError, parse_yaml

_CHIPS = Path(__file__).with_name("chips")
_CALIBRATIONS = Path(__file__).with_name("calibrations")
"""Figures of the cost section that `schedc calibrate` fitted to measured times: they go before those of the chip."""
_SECTIONS = ("capability", "cost")


def chip_names() -> list[str]:
    """Chips that come with schedc, sorted."""
    return sorted(path.stem for path in _CHIPS.glob("*.yaml"))


def load_chip(name: str) -> Chip:
    """Raises TargetError, with the nearest names, for a chip that does not come with schedc."""
    return _chip(_packaged_data(name), f"target {name}")


def load_chip_file(path: Path) -> Chip:
    """A chip file: a whole one, or one that says `base: <chip>` and then only what differs from that chip."""
    data = _parse(read_text(path, TargetError), str(path))
    if isinstance(data, dict) and "base" in data:
        data = dict(data)
        base = _packaged_data(str(data.pop("base")), f"{path}: base: ")
        sections = {key: base[key] | data[key] for key in _SECTIONS if isinstance(data.get(key), dict)}
        data = base | {"name": path.stem} | data | sections
    chip = _chip(data, str(path))
    if chip.name in chip_names() and not is_packaged(chip):
        raise TargetError(
            f"{path}: name: {chip.name} is a chip that comes with schedc, with other figures; give it a new name"
        )
    return chip


def is_packaged(chip: Chip) -> bool:
    """Whether it is, in every figure, the chip of that name that comes with schedc."""
    return chip.name in chip_names() and load_chip(chip.name) == chip


def chip_from_dict(data: Any, source: str) -> Chip:
    """What `Chip.model_dump` gave. Raises TargetError with all faults of what is none, which is called `source`."""
    return _chip(data, source)


def _packaged_data(name: str, where: str = "") -> dict[str, Any]:
    if name not in chip_names():
        close = nearest(name, chip_names())
        hint = f"nearest: {', '.join(close)}" if close else f"known: {', '.join(chip_names())}"
        raise TargetError(
            f"{where}unknown target {name!r}; {hint}; a chip of your own is given as a file, ./{name}.yaml"
        )
    data: dict[str, Any] = _parse((_CHIPS / f"{name}.yaml").read_text(encoding="utf-8"), name)
    calibration = calibration_path(name)
    if calibration.exists():
        data["cost"] |= _parse(calibration.read_text(encoding="utf-8"), f"calibration of {name}")["cost"]
    return data


def calibration_path(name: str) -> Path:
    """Where the calibration of the chip called `name` is, or would be."""
    return _CALIBRATIONS / f"{name}.yaml"


def _parse(text: str, source: str) -> Any:
    try:
        return parse_yaml(text)
    except YamlError as error:
        raise TargetError(f"{source}: {error}") from None


def _chip(data: Any, source: str) -> Chip:
    chip, faults = validate(Chip, data)
    if chip is None:
        raise TargetError("\n".join([f"{source}:", *(f"  {fault}" for fault in faults)]))
    return chip

"""`Target`: a slice of chips of one kind, and how many of its devices a program uses."""

import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

from schedc.errors import TargetError
from schedc.target.chip import Capability, Chip, Cost
from schedc.target.load import chip_names, load_chip, load_chip_file


@dataclass(frozen=True)
class Target:
    """A chip is not a device: a TPU7x chip is two devices to JAX. `devices_used` of `devices` run the program."""

    chip: Chip
    topology: tuple[int, ...]
    devices_used: int

    @property
    def chips(self) -> int:
        return prod(self.topology)

    @property
    def devices(self) -> int:
        return self.chips * self.chip.devices_per_chip

    @property
    def hosts(self) -> int:
        return self.chips // prod(self.chip.host_shape)

    @property
    def name(self) -> str:
        """`tpu7x:2x2x1`, with the name of the user's own file where it is one."""
        return f"{self.chip.name}:{_text(self.topology)}"

    @property
    def topology_name(self) -> str:
        """What the TPU compiler calls this topology."""
        return f"{self.chip.compiler_name}:{_text(self.topology)}"

    @property
    def capability(self) -> Capability:
        return self.chip.capability

    @property
    def cost(self) -> Cost:
        return self.chip.cost

    def describe(self) -> str:
        """`tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 1 device used`."""
        sizes = [_count(self.chips, "chip"), _count(self.devices, "device"), _count(self.hosts, "host")]
        return f"{self.name}: {', '.join(sizes)}; {_count(self.devices_used, 'device')} used"


def parse_target(text: str, devices: int = 1) -> Target:
    """`tpu7x`, `tpu7x:2x2x1`, `./mychip.yaml` or `./mychip.yaml:2x2x1`; `devices` of it run the program.

    Raises TargetError for an unknown chip (with the nearest names), a bad file (all faults at once), a topology
    that is not made of whole hosts, and more devices than there are.
    """
    name, topology_text = _split(text)
    is_file = "/" in name or name.endswith((".yaml", ".yml"))
    chip = load_chip_file(Path(name)) if is_file else load_chip(name)
    return _target(text, chip, topology_text, devices)


def target_of_chip(chip: Chip, name: str, devices: int) -> Target:
    """What `Target.name` called a target of this chip. Raises TargetError for a topology that it does not have."""
    return _target(name, chip, _split(name)[1], devices)


def _target(text: str, chip: Chip, topology_text: str | None, devices: int) -> Target:
    topology = _topology(text, chip, chip.default_topology if topology_text is None else topology_text)
    target = Target(chip, topology, devices)
    if not 1 <= devices <= target.devices:
        raise TargetError(
            f"{target.name} has {_count(target.devices, 'device')} ({_count(target.chips, 'chip')} of "
            f"{chip.devices_per_chip}); {devices} cannot be used"
        )
    return target


def list_targets() -> list[Target]:
    """Every chip that comes with schedc, in its default topology."""
    return [parse_target(name) for name in chip_names()]


def _split(text: str) -> tuple[str, str | None]:
    name, colon, topology = text.rpartition(":")
    return (name, topology) if colon and name else (text, None)


def _topology(text: str, chip: Chip, topology_text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", topology_text):
        given = f"topology {topology_text!r} is not" if topology_text else "a topology is missing after the colon,"
        raise TargetError(f"{text}: {given} like {chip.default_topology}")
    topology = tuple(int(size) for size in topology_text.split("x"))
    if len(topology) != len(chip.host_shape):
        raise TargetError(
            f"{text}: topology {topology_text} has {_count(len(topology), 'dimension')}, {chip.name} has "
            f"{len(chip.host_shape)}, as in {chip.default_topology}"
        )
    if any(size % host for size, host in zip(topology, chip.host_shape, strict=True)):
        raise TargetError(
            f"{text}: topology {topology_text} is not made of whole hosts of {_text(chip.host_shape)} chips"
        )
    if prod(topology) > chip.pod_chips:
        raise TargetError(
            f"{text}: topology {topology_text} is {prod(topology)} chips, the largest slice of {chip.name} has "
            f"{chip.pod_chips}"
        )
    return topology


def _text(topology: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in topology)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"

"""Which device jax uses. To be called before jax is imported: it decides once a process."""

from os import environ
from pathlib import Path


def use_best() -> None:
    """A TPU if this machine has one, else the CPU; what the user has set stays."""
    if not has_tpu_devices():
        environ.setdefault("JAX_PLATFORMS", "cpu")  # with libtpu installed, jax looks for a TPU loudly


def has_tpu_devices(devices: Path = Path("/dev")) -> bool:
    """Whether the driver shows what may be a TPU."""
    return any(devices.glob("accel*")) or any(entry.name.isdigit() for entry in devices.glob("vfio/*"))

"""Which device jax uses. To be called before jax is imported: it decides once a process."""

from os import environ
from pathlib import Path

from schedc.backends.pallas.aot.environment import virtual_devices
from schedc.errors import UserError


def use_best(devices: int = 1) -> None:
    """A TPU if this machine has one, else the CPU as so many devices; what the user has set stays."""
    if has_tpu_devices():
        return
    environ.setdefault("JAX_PLATFORMS", "cpu")  # with libtpu installed, jax looks for a TPU loudly
    for name, value in virtual_devices(devices).items():
        environ.setdefault(name, value)


def require_devices(devices: int) -> None:
    """Raises UserError if jax has fewer devices here."""
    import jax

    if len(jax.devices()) < devices:
        raise UserError(
            f"the kernel is for {devices} devices, jax has {len(jax.devices())} here; on a CPU it shows as many as "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={devices} says"
        )


def has_tpu_devices(devices: Path = Path("/dev")) -> bool:
    """Whether the driver shows what may be a TPU."""
    return any(devices.glob("accel*")) or any(entry.name.isdigit() for entry in devices.glob("vfio/*"))

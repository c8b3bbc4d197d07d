"""Export a kernel as a portable artifact."""

from pathlib import Path

from .load import arguments_of, load_kernel


def export_kernel(kernel_path: Path | str, devices_used: int = 1) -> bytes:
    """The kernel as a serialized `jax.export` artifact for TPUs; needs neither a TPU nor libtpu.

    `jax.export.deserialize(data).call(*arguments)` runs it on any mesh of `devices_used` devices. Needs `flatbuffers`.
    """
    import jax
    from jax import export

    kernel = load_kernel(Path(kernel_path).resolve())
    mesh = jax.sharding.AbstractMesh((devices_used,), ("device",))
    exported = export.export(kernel.decode_step(mesh), platforms=["tpu"])(*arguments_of(kernel))
    return bytes(exported.serialize())

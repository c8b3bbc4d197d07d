"""The environment in which libtpu compiles on a machine without a TPU."""

from pathlib import Path

DUMPS = "packed-bundles-post-ra|^original"


def compiler_environment(dump_folder: Path | None) -> dict[str, str]:
    """Variables that must be set before libtpu loads; dumps can be asked for only here, so one folder a process."""
    variables = {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        # Without it a second process that loads libtpu at the same time aborts.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
    if dump_folder is not None:
        variables["LIBTPU_INIT_ARGS"] = " ".join(
            [
                f"--xla_jf_dump_to={dump_folder}",
                "--xla_jf_dump_llo_text=true",
                f"--xla_jf_dump_llo_pass_label_regex={DUMPS}",
            ]
        )
    return variables


INTERPRETER_THREADS = 64
"""With few threads the devices wait for each other for ever: jax 0.10.2 makes as many as the machine has cores."""


def virtual_devices(count: int) -> dict[str, str]:
    """What makes jax on a CPU show `count` devices, to interpret a kernel on. It must be set before jax is imported."""
    if count == 1:
        return {}
    return {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
        "NPROC": str(INTERPRETER_THREADS),
    }

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

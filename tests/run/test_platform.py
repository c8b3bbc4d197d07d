"""jax is told to use the CPU where there is no TPU, unless the user has said otherwise."""

from os import environ
from pathlib import Path

import pytest

from schedc.run import platform


def test_devices_of_a_tpu_are_accel_files_or_numbered_vfio_groups(tmp_path: Path) -> None:
    (tmp_path / "vfio").mkdir()
    (tmp_path / "vfio" / "vfio").touch()
    assert not platform.has_tpu_devices(tmp_path)
    (tmp_path / "vfio" / "0").touch()
    assert platform.has_tpu_devices(tmp_path)
    (tmp_path / "vfio" / "0").unlink()
    (tmp_path / "accel0").touch()
    assert platform.has_tpu_devices(tmp_path)


@pytest.mark.parametrize(
    ("found", "set_to", "expected"), [(False, None, "cpu"), (False, "tpu", "tpu"), (True, None, None)]
)
def test_the_users_choice_stays(
    monkeypatch: pytest.MonkeyPatch, found: bool, set_to: str | None, expected: str | None
) -> None:
    monkeypatch.setattr(platform, "has_tpu_devices", lambda: found)
    monkeypatch.setenv("JAX_PLATFORMS", set_to or "")
    if set_to is None:
        monkeypatch.delenv("JAX_PLATFORMS")
    platform.use_best()
    assert environ.get("JAX_PLATFORMS") == expected

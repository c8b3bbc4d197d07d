"""The marks of a test with eight or more virtual devices."""

import sys

import pytest

EIGHT_DEVICES = (
    pytest.mark.slow,
    pytest.mark.newest,
    pytest.mark.skipif(
        sys.version_info < (3, 12), reason="on jax 0.10.2 eight virtual devices deadlock on two cores without NPROC=16"
    ),
)
